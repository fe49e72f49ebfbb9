import {
  type AskedSigner,
  CoreClient,
  call,
  checkStored,
  createAnswerParser,
  PARTS_FROM_BYTES,
  readRefusal,
  storeInParts,
  verifyListed,
} from '@skerry/client';
import { AppError, ownerOf, sha256HexOf } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { STORAGE_API, StoredFileView, UploadView } from '@skerry/protocol/api/core/storage';

export interface Uploaded {
  /** Of the STORE message. */
  readonly itemHash: string;
  /** SHA-256, computed here; the node computed the same. */
  readonly fileHash: string;
  /** Whether the node had the bytes already: they were not sent again. */
  readonly wasThere: boolean;
  /** What the node had of it when this began: after an upload that broke off. Bytes. */
  readonly hadBytes: number;
}

/** How far a file is: hashed from 0 to 1, since the signature covers the hash; sent from 1 to 2. */
type Tell = (done: number) => void;

const parseUpload = createAnswerParser(UploadView, 'the answer');
const parseStored = createAnswerParser(StoredFileView, 'the answer');
/** A sender that gets nothing away for so long has lost the node. */
const SILENCE_MS = 60_000;

async function hashOf(file: Blob, tell: Tell): Promise<string> {
  let done = 0;
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      done += chunk.length;
      tell(done / file.size);
      controller.enqueue(chunk);
    },
  });
  const chunks = (async function* () {
    const reader = file.stream().pipeThrough(counting).getReader();
    for (;;) {
      const { done: isDone, value } = await reader.read();
      if (isDone) return;
      yield value;
    }
  })();
  return sha256HexOf(chunks);
}

interface Sending {
  readonly method: 'POST' | 'PUT';
  readonly url: string;
  readonly body: FormData | Blob;
  /** How much of the body is sent, from 0 to 1. */
  readonly tell: (part: number) => void;
}

/** A request that tells how much of it is sent, which `fetch` does not. Throws AppError. */
function send({ method, url, body, tell }: Sending): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = new XMLHttpRequest();
    const lost = () => {
      asked.abort();
      reject(
        new AppError('UPSTREAM_UNAVAILABLE', `${new URL(url).origin} was lost while the file was sent to it`),
      );
    };
    let silence = setTimeout(lost, SILENCE_MS);
    asked.upload.onprogress = ({ loaded, total }) => {
      clearTimeout(silence);
      silence = setTimeout(lost, SILENCE_MS);
      tell(loaded / Math.max(total, 1));
    };
    asked.onload = () => {
      clearTimeout(silence);
      resolve({ status: asked.status, text: asked.responseText });
    };
    asked.onerror = () => {
      clearTimeout(silence);
      lost();
    };
    asked.open(method, url);
    asked.send(body);
  });
}

/** Whether the node has these bytes: after an upload that broke off once they had arrived, or of anybody else. */
async function isThere(core: CoreClient<AskedSigner>, hash: string, bytes: number): Promise<boolean> {
  try {
    return (await core.getFileMetadata(hash)).size === bytes;
  } catch (error) {
    if (error instanceof AppError && error.code === 'FILE_NOT_FOUND') return false;
    throw error;
  }
}

/**
 * The STORE message by which the owner keeps these bytes already: another one would be charged as well. Throws HASH_MISMATCH, and what
 * else a message is refused with, where the one that the node names is none that keeps them.
 */
async function findOwn({ url, signer }: CoreClient<AskedSigner>, hash: string): Promise<string | undefined> {
  const query = {
    ...{ owners: signer.address, msgTypes: 'STORE', contentHashes: hash, pagination: 1 },
    bodies: 'shared',
  } as const;
  const [row] = (await call(url, NETWORK_LISTS_API.listNetworkMessages, { query })).messages;
  if (!row) return undefined;
  const { itemHash, type, sender, content } = await verifyListed({ coreUrl: url }, row);
  const keeps = type === 'STORE' && ownerOf(sender, content ?? {}) === signer.address;
  if (itemHash === row.item_hash && keeps && content?.item_hash === hash) return itemHash;
  throw new AppError('HASH_MISMATCH', `the node says that ${row.item_hash} keeps ${hash}, which it does not`);
}

/** What is sent: the file, its hash, and the hash signed. */
interface Signed {
  readonly core: CoreClient<AskedSigner>;
  readonly file: File;
  readonly hash: string;
  readonly signature: string;
}

async function sendWhole({ core, file, hash, signature }: Signed, tell: Tell): Promise<string> {
  const body = new FormData();
  body.set('address', core.signer.address);
  body.set('signature', signature);
  body.set('file', file, file.name);
  const url = `${core.url}${STORAGE_API.storeFile.path}`;
  const { status, text } = await send({ method: 'POST', url, body, tell: (part) => tell(1 + part) });
  if (status !== 200) throw readRefusal(text, { status, url });
  return checkStored(core.signer, hash, parseStored(JSON.parse(text))).item_hash;
}

/** Sends the rest of a file, and tells how much of the whole is there. */
async function sendRest(url: string, body: Blob, tell: (part: number) => void): Promise<UploadView> {
  const { status, text } = await send({ method: 'PUT', url, body, tell });
  if (status !== 200) throw readRefusal(text, { status, url });
  return parseUpload(JSON.parse(text));
}

async function sendFile(
  core: CoreClient<AskedSigner>,
  file: File,
  hash: string,
  tell: Tell,
): Promise<Pick<Uploaded, 'itemHash' | 'hadBytes'>> {
  if (file.size >= PARTS_FROM_BYTES) {
    let hadBytes: number | undefined;
    const itemHash = await storeInParts(core, file, hash, {
      onPart: (received) => {
        hadBytes ??= received;
      },
      send: (url, rest, offset) =>
        sendRest(url, rest, (part) => tell(1 + (offset + part * rest.size) / file.size)),
    });
    if (itemHash !== undefined) return { itemHash, hadBytes: hadBytes ?? 0 };
  }
  const signature = await core.signer.sign(hash);
  return { itemHash: await sendWhole({ core, file, hash, signature }, tell), hadBytes: 0 };
}

/** Hashes a file, has it signed and sends it, unless the node has its bytes, and keeps them for this owner. Throws AppError. */
export async function upload(
  coreUrl: string,
  file: File,
  signer: AskedSigner | undefined,
  tell: Tell,
): Promise<Uploaded> {
  if (!signer) throw new AppError('SIGNATURE_REQUIRED', 'a file is signed, and no key is chosen');
  const core = new CoreClient({ url: coreUrl, signer });
  const fileHash = await hashOf(file, tell);
  const wasThere = await isThere(core, fileHash, file.size);
  if (!wasThere) return { ...(await sendFile(core, file, fileHash, tell)), fileHash, wasThere };
  const content = { item_type: 'storage', item_hash: fileHash, size: file.size };
  const itemHash =
    (await findOwn(core, fileHash)) ?? (await core.postMessage({ type: 'STORE', content })).item_hash;
  return { itemHash, fileHash, wasThere, hadBytes: file.size };
}
