import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';

/** What the disk had of each file and directory when it was synced last. */
interface Disk {
  readonly contents: Map<string, Buffer>;
  /** Directory -> the names in it, and what each is. */
  readonly names: Map<string, Map<string, string>>;
}

/** What no other file or directory has, also not one that gets the same inode later. */
function identityOf(path: string): string {
  const found = statSync(path, { bigint: true });
  return `${found.isDirectory() ? 'directory' : 'file'} ${found.dev} ${found.ino} ${found.birthtimeNs}`;
}

function note({ contents, names }: Disk, path: string): void {
  const id = identityOf(path);
  if (!id.startsWith('directory')) {
    contents.set(id, readFileSync(path));
    return;
  }
  const found = readdirSync(path).map((name): [string, string] => [name, identityOf(join(path, name))]);
  names.set(id, new Map(found));
}

/**
 * Watches what this process makes durable, by the calls of fsync and fdatasync that it really makes, and says what would be
 * left after a power cut in the worst case: what was not synced is not there.
 */
export class PowerCut implements Disposable {
  readonly #disk: Disk = { contents: new Map(), names: new Map() };
  readonly #restore: () => void;

  private constructor(restore: () => void) {
    this.#restore = restore;
  }

  static async watch(): Promise<PowerCut> {
    const probe = await open(import.meta.filename, 'r');
    const handles = Object.getPrototypeOf(probe) as { [call in 'sync' | 'datasync']: () => Promise<void> };
    await probe.close();
    const { sync, datasync } = handles;
    const watching = new PowerCut(() => Object.assign(handles, { sync, datasync }));
    const watched = (call: () => Promise<void>) =>
      async function (this: { readonly fd: number }) {
        const path = readlinkSync(`/proc/self/fd/${this.fd}`);
        await call.call(this);
        // A file that was replaced meanwhile has no name that it could be found by again.
        if (existsSync(path)) note(watching.#disk, path);
      };
    Object.assign(handles, { sync: watched(sync), datasync: watched(datasync) });
    return watching;
  }

  /** Makes in the directory `target` what would be left of the directory `from`, whose own name is safe. */
  leave(from: string, target: string): void {
    this.#make(identityOf(from), target);
  }

  #make(id: string, target: string): void {
    const { names, contents } = this.#disk;
    if (!id.startsWith('directory')) {
      writeFileSync(target, contents.get(id) ?? '', { mode: 0o600 });
      return;
    }
    mkdirSync(target, { recursive: true, mode: 0o700 });
    for (const [name, one] of names.get(id) ?? []) this.#make(one, join(target, name));
  }

  [Symbol.dispose](): void {
    this.#restore();
  }
}
