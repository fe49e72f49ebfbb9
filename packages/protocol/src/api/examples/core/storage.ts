import type { Examples } from '../../operation.ts';
import { FILE_SIGNATURE, PIN } from '../signed.ts';
import { FILE, OWNER } from '../values.ts';

const DESCRIBED = {
  file_hash: FILE.hash,
  size: FILE.bytes,
  download_url: `/api/v0/storage/raw/${FILE.hash}`,
};
const REFERENCE = { ref: FILE.store, owner: OWNER, ...DESCRIBED };

/** A directory `docs` with the file as `hello.txt`, and the one that it is in. */
const DIRECTORY = 'QmNdYh2i9GrQ6Hno3ByMJT3JM52kQaeN7gmcvoeN1tzdiE';
const ROOT = 'QmX5XFmhGyTcgC5vsyT3Ya8iTE33KGj8SpvnRXheBdBN96';
const LISTING = {
  hash: DIRECTORY,
  type: 'directory',
  entries: [{ name: 'hello.txt', hash: FILE.cid, size: 19 }],
  complete: true,
};

/** A body of JSON, and the SHA-256 and the CID of its text. */
const JSON_BODY = { a: 1 };
const JSON_HASH = '015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862';
const JSON_CID = 'QmPmgMwMdNnt4ujECmfCvwY9K4heH1qLnMeaLW7XDqxtxH';

const MIB = 1024 * 1024;
/** A file that comes in parts: 16 MiB of zeros. */
const LARGE = {
  hash: '080acf35a507ac9849cfcba47dc2ad83e01b75663a516279c8b9d243b719643e',
  bytes: 16 * MIB,
};

export const STORAGE_EXAMPLES: Examples = {
  storeFile: { answer: { item_hash: FILE.store, status: 'success', file_hash: FILE.hash } },
  addJson: { body: JSON_BODY, answer: { status: 'success', hash: JSON_HASH } },
  getFileMetadata: { params: { hash: FILE.hash }, answer: { ...DESCRIBED, type: 'file' } },
  getFileLimits: {
    answer: {
      storage: { max_file_size: 4096 * MIB, max_unauthenticated_upload_file_size: 25 * MIB },
      ipfs: {
        max_upload_file_size: 4096 * MIB,
        max_upload_car_size: 4096 * MIB,
        max_unauthenticated_upload_file_size: 25 * MIB,
      },
    },
  },
  getUpload: {
    params: { hash: LARGE.hash },
    query: { address: OWNER, size: LARGE.bytes },
    answer: { file_hash: LARGE.hash, size: LARGE.bytes, received: MIB, item_hash: null },
  },
  sendPart: {
    params: { hash: FILE.hash },
    query: { address: OWNER, size: FILE.bytes, signature: FILE_SIGNATURE, offset: 0 },
    answer: { file_hash: FILE.hash, size: FILE.bytes, received: FILE.bytes, item_hash: FILE.store },
  },
  addFile: { answer: { status: 'success', hash: FILE.hash } },
  getFileByMessage: { params: { hash: FILE.store }, answer: REFERENCE },
  getFileByRef: { params: { ref: FILE.store }, answer: REFERENCE },
  getFileByName: { params: { address: OWNER, ref: 'greeting' }, answer: { ...REFERENCE, ref: 'greeting' } },
  countFileMessages: { params: { hash: FILE.hash }, answer: 1 },
  getIpfsFile: { params: { hash: DIRECTORY }, answer: LISTING },
  getIpfsPath: { params: { hash: ROOT, '*': 'docs' }, answer: LISTING },
  getGatewayFile: { params: { hash: DIRECTORY }, answer: LISTING },
  getGatewayPath: { params: { hash: ROOT, '*': 'docs' }, answer: LISTING },
  addIpfsFile: { answer: { status: 'success', hash: FILE.cid, name: FILE.cid, size: FILE.bytes } },
  addIpfsCar: { answer: { status: 'success', hash: FILE.cid, size: FILE.bytes } },
  pinToIpfs: { body: PIN.body, answer: { item_hash: PIN.itemHash, status: 'success' } },
  addIpfsJson: { body: JSON_BODY, answer: { status: 'success', hash: JSON_CID } },
};
