import { sha256Hex } from '@skerry/protocol';
import { signers } from '../core.ts';
import {
  answers,
  type Cases,
  FILE_BYTES,
  formCall,
  given,
  jsonCall,
  NO_HASH,
  refuses,
  refusesTooMany,
  refusesWithoutDatabase,
  succeeds,
  uploadCall,
} from './case.ts';

const ADD = '/api/v0/storage/add_file';
const STORE = '/api/v0/storage/store';

const UPLOAD = `/api/v0/storage/uploads/${sha256Hex(FILE_BYTES)}`;

/** Longer than one may be. */
const LONG_TAG = 'x'.repeat(4_000);

/** The file of the tests as one part. */
const partCall = (change: Readonly<Record<string, string>> = {}, body = FILE_BYTES) => {
  const signature = signers.alice.sign(sha256Hex(FILE_BYTES));
  const whole = { address: signers.alice.address, size: String(FILE_BYTES.length) };
  const query = new URLSearchParams({ ...whole, signature, offset: '0', ...change });
  return { path: `${UPLOAD}?${query}`, headers: { 'content-type': 'application/octet-stream' }, body };
};

export const storageCases: Cases = {
  'GET /api/v0/storage/uploads/{hash}': [
    succeeds(`${UPLOAD}?address=${signers.alice.address}&size=5`),
    refuses('INVALID_HASH', `/api/v0/storage/uploads/abc?address=${signers.alice.address}&size=5`),
    refuses('INVALID_ADDRESS', `${UPLOAD}?address=0x1&size=5`),
    refuses('INVALID_PARAMETERS', `${UPLOAD}?address=${signers.alice.address}&size=0`),
    refusesWithoutDatabase(`${UPLOAD}?address=${signers.alice.address}&size=5`),
  ],
  'PUT /api/v0/storage/uploads/{hash}': [
    succeeds(() => partCall()),
    refuses('INVALID_SIGNATURE', () => partCall({ signature: `0x${'11'.repeat(65)}` })),
    refuses('SIGNATURE_REQUIRED', () => partCall({ signature: '' })),
    refuses('INVALID_ENVELOPE', () => partCall({ channel: 'a\u0001' })),
    refuses('INVALID_CONTENT', () => partCall({ tags: LONG_TAG })),
    refuses('INVALID_PARAMETERS', () => partCall({ offset: '-1' })),
    refuses('HASH_MISMATCH', () => partCall({ size: '5' }, Buffer.alloc(5))),
    refuses('FILE_TOO_LARGE', () => partCall({ size: String(1024 ** 4) })),
    refuses('UNSUPPORTED_MEDIA_TYPE', () => ({ ...partCall(), headers: { 'content-type': 'text/plain' } })),
  ],
  'POST /api/v0/storage/store': [
    succeeds(() => uploadCall()),
    refuses('SIGNATURE_REQUIRED', () => formCall(STORE, { address: signers.alice.address }, FILE_BYTES)),
    refuses('INVALID_SIGNATURE', () => uploadCall(FILE_BYTES, { signature: `0x${'11'.repeat(65)}` })),
    refuses('INVALID_ENVELOPE', () => uploadCall(FILE_BYTES, { channel: 'a\u0001' })),
    refuses('INVALID_CONTENT', () => uploadCall(FILE_BYTES, { tags: LONG_TAG })),
    refuses('INVALID_PARAMETERS', () => formCall(STORE, { address: signers.alice.address })),
    refuses('UNKNOWN_FIELD', () => uploadCall(FILE_BYTES, { colour: 'red' })),
    refuses('FILE_TOO_LARGE', () => uploadCall(Buffer.alloc(1024 * 1024 + 1))),
    refuses('UNSUPPORTED_MEDIA_TYPE', () => jsonCall(STORE, '{}')),
  ],
  'GET /api/v0/storage/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/storage/${await given.file(core)}` })),
    refuses('FILE_NOT_FOUND', `/api/v0/storage/${NO_HASH}`),
    refuses('INVALID_HASH', '/api/v0/storage/abc'),
  ],
  'GET /api/v0/storage/raw/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/storage/raw/${await given.file(core)}` })),
    answers(206, async (core) => ({
      path: `/api/v0/storage/raw/${await given.file(core)}`,
      headers: { range: 'bytes=0-3' },
    })),
    refuses('RANGE_NOT_SATISFIABLE', async (core) => ({
      path: `/api/v0/storage/raw/${await given.file(core)}`,
      headers: { range: 'bytes=1000000-' },
    })),
    refuses('FILE_NOT_FOUND', `/api/v0/storage/raw/${NO_HASH}`),
  ],
  'HEAD /api/v0/storage/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/storage/${await given.file(core)}` })),
    refuses(404, `/api/v0/storage/${NO_HASH}`),
  ],
  'HEAD /api/v0/storage/raw/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/storage/raw/${await given.file(core)}` })),
    refuses(404, `/api/v0/storage/raw/${NO_HASH}`),
  ],
  'GET /api/v0/storage/metadata/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/storage/metadata/${await given.file(core)}` })),
    refuses('FILE_NOT_FOUND', `/api/v0/storage/metadata/${NO_HASH}`),
    refuses('INVALID_HASH', '/api/v0/storage/metadata/abc'),
  ],
  'GET /api/v0/storage/limits.json': [
    succeeds('/api/v0/storage/limits.json'),
    refusesTooMany('/api/v0/storage/limits.json'),
  ],
  'POST /api/v0/storage/add_file': [
    succeeds(() => formCall(ADD, {}, FILE_BYTES)),
    succeeds(() => ({
      path: ADD,
      headers: { 'content-type': 'application/octet-stream' },
      body: FILE_BYTES,
    })),
    refuses('INVALID_PARAMETERS', () => formCall(ADD, {})),
    refuses('UNKNOWN_FIELD', () => formCall(ADD, { colour: 'red' }, FILE_BYTES)),
  ],
  'GET /api/v0/storage/by-message-hash/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/storage/by-message-hash/${await given.stored(core)}` })),
    refuses('FILE_NOT_FOUND', `/api/v0/storage/by-message-hash/${NO_HASH}`),
    refuses('INVALID_HASH', '/api/v0/storage/by-message-hash/abc'),
  ],
  'GET /api/v0/storage/by-ref/{ref}': [
    succeeds(async (core) => ({ path: `/api/v0/storage/by-ref/${await given.stored(core)}` })),
    refuses('FILE_NOT_FOUND', `/api/v0/storage/by-ref/${NO_HASH}`),
  ],
  'GET /api/v0/storage/by-ref/{address}/{ref}': [
    succeeds(async (core) => {
      await given.stored(core);
      return { path: `/api/v0/storage/by-ref/${signers.alice.address}/contract` };
    }),
    refuses('FILE_NOT_FOUND', `/api/v0/storage/by-ref/${signers.alice.address}/nothing`),
  ],
  'GET /api/v0/storage/count/{hash}': [
    succeeds(async (core) => ({ path: `/api/v0/storage/count/${await given.file(core)}` })),
    refuses('INVALID_HASH', '/api/v0/storage/count/abc'),
  ],
  'POST /api/v0/storage/add_json': [
    succeeds(() => jsonCall('/api/v0/storage/add_json', '{"a":1}')),
    refuses('INVALID_JSON', () => jsonCall('/api/v0/storage/add_json', '{')),
    refuses('UNSUPPORTED_MEDIA_TYPE', () => ({
      ...jsonCall('/api/v0/storage/add_json', '{}'),
      headers: { 'content-type': 'image/png' },
    })),
  ],
};
