import { ASKED_FILES_MAX, END, encodeAskedFiles, encodeKeys, encodeRanges, START } from '@skerry/protocol';
import { encodeFrames } from '../../peers/sync/frames.ts';
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
const FORGOTTEN = '/api/v0/sync/forgotten';
const FILES = '/api/v0/sync/files';
const OFFERS = '/api/v0/sync/offers';
const frameOf = (text: string) => encodeFrames([text]);
const everything = encodeRanges([{ kind: 'list', lower: START, upper: END }]);
const someFiles = encodeAskedFiles(['ab'.repeat(32), 'cd'.repeat(32)]);
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
  'POST /api/v0/sync/forgotten': [
    succeeds(() => bytesCall(FORGOTTEN, everything)),
    refuses('INVALID_PARAMETERS', () => bytesCall(FORGOTTEN, Buffer.from('garbage'))),
    refuses('BODY_TOO_LARGE', () => bytesCall(FORGOTTEN, Buffer.alloc(3 * 1024 * 1024, 1))),
  ],
  'POST /api/v0/sync/messages': [
    succeeds(() => bytesCall(MESSAGES, someKeys)),
    refuses('INVALID_PARAMETERS', () => bytesCall(MESSAGES, someKeys.slice(0, -1))),
    refuses('BODY_TOO_LARGE', () => bytesCall(MESSAGES, Buffer.alloc(64 * 1024, 1))),
  ],
  'POST /api/v0/sync/files': [
    succeeds(() => bytesCall(FILES, someFiles)),
    succeeds(() => bytesCall(FILES, someFiles.slice(0, 1))),
    refuses('INVALID_PARAMETERS', () => bytesCall(FILES, someFiles.slice(0, -1))),
    refuses('INVALID_PARAMETERS', () => bytesCall(FILES, new Uint8Array())),
    refuses('BODY_TOO_LARGE', () => bytesCall(FILES, Buffer.alloc(2 * 32 * ASKED_FILES_MAX, 1))),
    refusesWithoutDatabase(() => bytesCall(FILES, someFiles)),
  ],
  'POST /api/v0/sync/offers': [
    succeeds(() => bytesCall(OFFERS, frameOf('{}'))),
    succeeds(() => bytesCall(OFFERS, new Uint8Array())),
    refuses('INVALID_PARAMETERS', () => bytesCall(OFFERS, frameOf('{}').subarray(0, -1))),
    refuses('NOT_PERMITTED', async (core) => {
      const forged = Buffer.concat(Array.from({ length: 20 }, () => frameOf('{}')));
      await core.post('/sync/offers', forged, { 'content-type': 'application/octet-stream' });
      return bytesCall(OFFERS, new Uint8Array());
    }),
    refuses('BODY_TOO_LARGE', () => bytesCall(OFFERS, Buffer.alloc(4 * 1024 * 1024, 1))),
  ],
};
