import { fields, maybe, number, oneOf, type Read, rows, text } from '../pure/read.ts';

/** Sealed keys in the browser's own storage (IndexedDB), by address. */

const readKept = fields({
  address: text,
  guard: oneOf('passkey', 'passphrase'),
  salt: text,
  iv: text,
  sealed: text,
  /** Of a passkey: its id, and what it is asked with. Hexadecimal. */
  credential: maybe(text),
  question: maybe(text),
  /** Unix milliseconds. */
  madeMs: number,
});
export type KeptKey = Read<typeof readKept>;
const readAll = rows(readKept);

const DATABASE = 'skerry';
const STORE = 'keys';

const settled = <T>(request: IDBRequest<T>) =>
  new Promise<T>((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

function open(): Promise<IDBDatabase> {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: 'address' });
  return settled(opening);
}

async function within<T>(
  mode: IDBTransactionMode,
  act: (store: IDBObjectStore) => IDBRequest<T>,
): Promise<T> {
  const database = await open();
  try {
    return await settled(act(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

export const listKept = async () => readAll(await within('readonly', (store) => store.getAll()), 'keys');

export async function putKept(key: KeptKey): Promise<void> {
  await within('readwrite', (store) => store.put(key));
  // The browser may clear what it was not asked to keep. Where it refuses, the export is what is left.
  await navigator.storage?.persist?.();
}

export async function removeKept(address: string): Promise<void> {
  await within('readwrite', (store) => store.delete(address));
}
