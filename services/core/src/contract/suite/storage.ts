import { signers } from '../../testing.ts';
import {
  type Cases,
  FILE_BYTES,
  formCall,
  given,
  jsonCall,
  NO_HASH,
  refuses,
  succeeds,
  uploadCall,
} from './case.ts';

const STORE = '/api/v0/storage/store';

export const storageCases: Cases = {
  'POST /api/v0/storage/store': [
    succeeds(() => uploadCall()),
    refuses('SIGNATURE_REQUIRED', () => formCall(STORE, { address: signers.alice.address }, FILE_BYTES)),
    refuses('INVALID_SIGNATURE', () => uploadCall(FILE_BYTES, { signature: `0x${'11'.repeat(65)}` })),
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
    refuses('FILE_NOT_FOUND', `/api/v0/storage/raw/${NO_HASH}`),
  ],
};
