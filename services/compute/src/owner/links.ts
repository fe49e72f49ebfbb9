import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { loadOrCreateText } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

const KEY_FILE = 'link.key';
const KEY_BYTES = 32;

/** Links by which a backup can be fetched without signing each request: they carry a proof of this node's own. */
export class BackupLinks {
  readonly #key: Buffer;

  private constructor(key: Buffer) {
    this.#key = key;
  }

  static async load(dataDir: string): Promise<BackupLinks> {
    const text = await loadOrCreateText(
      join(dataDir, KEY_FILE),
      () => randomBytes(KEY_BYTES).toString('hex'),
      0o600,
    );
    return new BackupLinks(Buffer.from(text, 'hex'));
  }

  /** @param expiresAtMs milliseconds since 1970 */
  pathOf(instanceId: string, backupId: string, expiresAtMs: number): string {
    const signature = this.#sign(instanceId, backupId, expiresAtMs).toString('hex');
    return `/control/machine/${instanceId}/backup/${backupId}?expires=${expiresAtMs}&signature=${signature}`;
  }

  /** Throws INVALID_SIGNATURE. */
  check(instanceId: string, backupId: string, expiresAtMs: number, signature: string, nowMs: number): void {
    const given = Buffer.from(signature, 'hex');
    const expected = this.#sign(instanceId, backupId, expiresAtMs);
    const isRight = given.length === expected.length && timingSafeEqual(given, expected);
    if (!isRight || !(expiresAtMs > nowMs))
      throw new AppError('INVALID_SIGNATURE', 'this link is not from this node, or it has expired');
  }

  #sign(instanceId: string, backupId: string, expiresAtMs: number): Buffer {
    return createHmac('sha256', this.#key).update(`${instanceId}\n${backupId}\n${expiresAtMs}`).digest();
  }
}
