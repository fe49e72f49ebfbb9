import { END, encodeKeys, encodeRanges, START } from '@skerry/protocol';
import {
  type Call,
  type Cases,
  given,
  refuses,
  refusesTooMany,
  refusesWithoutDatabase,
  succeeds,
} from './case.ts';

const bytesCall = (path: string, body: Uint8Array): Call => ({
  path,
  headers: { 'content-type': 'application/octet-stream' },
  body: Buffer.from(body),
});

const RANGES = '/api/v0/sync/ranges';
const MESSAGES = '/api/v0/sync/messages';
const everything = encodeRanges([{ kind: 'list', lower: START, upper: END }]);
const someKeys = encodeKeys([{ time: 1, id: 'ab'.repeat(20) }]);

/** What core nodes ask each other. */
export const syncCases: Cases = {
  'GET /api/v0/sync/status': [succeeds('/api/v0/sync/status'), refusesTooMany('/api/v0/sync/status')],
  'GET /api/v0/sync/messages': [
    succeeds(async (core) => {
      await given.message(core);
      return { path: MESSAGES };
    }),
    succeeds(`${MESSAGES}?place=${'7f'.repeat(8)}`),
    refuses('INVALID_CURSOR', `${MESSAGES}?place=xyz`),
    refuses('UNKNOWN_FIELD', `${MESSAGES}?page=1`),
    refusesWithoutDatabase(async (core) => {
      await given.message(core);
      return { path: MESSAGES };
    }),
  ],
  'POST /api/v0/sync/ranges': [
    succeeds(async (core) => {
      await given.message(core);
      return bytesCall(RANGES, everything);
    }),
    succeeds(() => bytesCall(RANGES, Uint8Array.of(1))),
    refuses('INVALID_PARAMETERS', () => bytesCall(RANGES, Buffer.from('garbage'))),
    refuses('INVALID_PARAMETERS', () => bytesCall(RANGES, new Uint8Array())),
    refuses('BODY_TOO_LARGE', () => bytesCall(RANGES, Buffer.alloc(3 * 1024 * 1024, 1))),
    refuses('UNSUPPORTED_MEDIA_TYPE', () => ({
      path: RANGES,
      headers: { 'content-type': 'text/html' },
      body: 'x',
    })),
  ],
  'POST /api/v0/sync/messages': [
    succeeds(() => bytesCall(MESSAGES, someKeys)),
    refuses('INVALID_PARAMETERS', () => bytesCall(MESSAGES, someKeys.slice(0, -1))),
    refuses('BODY_TOO_LARGE', () => bytesCall(MESSAGES, Buffer.alloc(64 * 1024, 1))),
  ],
};
