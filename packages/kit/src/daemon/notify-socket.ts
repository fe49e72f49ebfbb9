import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Sends one text to the service manager; false where it cannot be sent now. */
export type SendNotice = (text: string) => Promise<boolean>;

/** Linux's numbers (socket(2), send(2)). */
const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
/** `sun_path` of unix(7). */
const PATH_MAX_BYTES = 107;

const HELPER_TIMEOUT_MS = 5_000;

/** `struct sockaddr_un`; a leading @ stands for the zero byte of an abstract name. */
export function unixAddress(path: string): Buffer {
  const name = Buffer.from(path);
  if (name.length > PATH_MAX_BYTES) throw new Error('the path of the socket is too long');
  if (path.startsWith('@')) name[0] = 0;
  const family = Buffer.alloc(2);
  family.writeUInt16LE(AF_UNIX);
  return Buffer.concat([family, name, Buffer.alloc(path.startsWith('@') ? 0 : 1)]);
}

/**
 * By the C library, from this very process: a service manager believes the main process, and only that one unless it is told
 * otherwise. Node has no sockets of this kind (nodejs/node#61933). Rejects where `node:ffi`, which is experimental, is not
 * there or has changed.
 */
export async function openSocket(path: string): Promise<SendNotice> {
  const { dlopen } = await import('node:ffi');
  const { functions } = dlopen(null, {
    socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
    sendto: { arguments: ['i32', 'buffer', 'u64', 'i32', 'buffer', 'u32'], return: 'i64' },
  });
  const address = unixAddress(path);
  const fd = functions.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw new Error('the C library opens no socket');
  return async (text) => {
    const bytes = Buffer.from(text);
    const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    return functions.sendto(fd, bytes, BigInt(bytes.length), flags, address, address.length) >= 0n;
  };
}

/** By systemd's own program. It is believed where the sender is root, or the unit has `NotifyAccess=all`. */
export function useHelper(path: string): SendNotice {
  return async (text) => {
    const command = [`NOTIFY_SOCKET=${path}`, 'systemd-notify', '--no-block', ...text.split('\n')];
    const child = spawn('env', command, { stdio: 'ignore', timeout: HELPER_TIMEOUT_MS });
    try {
      const [code] = (await once(child, 'exit')) as [number | null];
      return code === 0;
    } catch {
      return false;
    }
  };
}
