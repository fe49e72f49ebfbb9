import type { Server } from 'node:net';

/** What Node's sockets are made of: libuv's TCP streams, as its own `net` uses them. No stable interface, hence `findTcpHandles`. */
export interface TcpHandle {
  /** Ours: what a callback without other context finds its way by. */
  wire?: unknown;
  onread: (this: TcpHandle) => Uint8Array | undefined;
  useUserBuffer(buffer: Uint8Array): void;
  readStart(): number;
  readStop(): number;
  writeBuffer(request: Request, bytes: Uint8Array): number;
  shutdown(request: Request): number;
  connect6(request: Request, address: string, port: number): number;
  getpeername(out: HandleName): number;
  getsockname(out: HandleName): number;
  setNoDelay(on: boolean): number;
  close(): void;
  reset(): number;
}

/** An operation under way, and what it needs when it is over. */
export interface Request {
  oncomplete?: (this: Request, status: number) => void;
  wire?: unknown;
  /** Kept from the garbage collector. */
  bytes?: Uint8Array;
}

export interface HandleName {
  address?: string;
  port?: number;
}

interface Acceptor {
  onconnection: (error: number, handle: TcpHandle | undefined) => void;
  setNoDelay(on: boolean): number;
}

export interface TcpHandles {
  createSocket(): TcpHandle;
  readonly ConnectRequest: new () => Request;
  readonly WriteRequest: new () => Request;
  readonly ShutdownRequest: new () => Request;
  /** Results of the last call, at the two places below. */
  readonly state: Int32Array;
  readonly bytesOrErrorAt: number;
  readonly wasAsyncAt: number;
}

interface TcpBinding {
  readonly TCP: new (type: number) => TcpHandle;
  readonly TCPConnectWrap: new () => Request;
  readonly constants: { readonly SOCKET: number };
}

interface StreamBinding {
  readonly WriteWrap: new () => Request;
  readonly ShutdownWrap: new () => Request;
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kLastWriteWasAsync: number;
}

const HANDLE_METHODS = [
  'useUserBuffer',
  'readStart',
  'readStop',
  'writeBuffer',
  'shutdown',
  'connect6',
  'getpeername',
  'getsockname',
  'setNoDelay',
  'close',
  'reset',
] as const satisfies (keyof TcpHandle)[];

/**
 * Node's own TCP streams, through `process.binding`, which is deprecated and may go (DEP0111); null where anything of them
 * is not as Node 26 has it. They cost a third less than sockets do per connection.
 */
export function findTcpHandles(): TcpHandles | null {
  try {
    const { binding } = process as unknown as { binding: (name: string) => unknown };
    const { TCP, TCPConnectWrap, constants } = binding('tcp_wrap') as TcpBinding;
    const stream = binding('stream_wrap') as StreamBinding;
    const { WriteWrap, ShutdownWrap, streamBaseState: state } = stream;
    const { kReadBytesOrError: bytesOrErrorAt, kLastWriteWasAsync: wasAsyncAt } = stream;
    const isAsExpected =
      [TCP, TCPConnectWrap, WriteWrap, ShutdownWrap].every((one) => typeof one === 'function') &&
      HANDLE_METHODS.every((name) => typeof TCP.prototype[name] === 'function') &&
      [constants.SOCKET, state[bytesOrErrorAt], state[wasAsyncAt]].every((one) => Number.isInteger(one));
    if (!isAsExpected) return null;
    return {
      createSocket: () => new TCP(constants.SOCKET),
      ConnectRequest: TCPConnectWrap,
      WriteRequest: WriteWrap,
      ShutdownRequest: ShutdownWrap,
      state,
      bytesOrErrorAt,
      wasAsyncAt,
    };
  } catch {
    return null;
  }
}

/**
 * From now on connections that `server`, which listens, accepts come as handles and not as its event; false where it has no
 * such handle, and all stays as it is.
 */
export function acceptHandles(server: Server, accept: (handle: TcpHandle) => void): boolean {
  const { _handle: acceptor } = server as unknown as { _handle?: Partial<Acceptor> };
  if (typeof acceptor?.onconnection !== 'function' || typeof acceptor.setNoDelay !== 'function') return false;
  // What is accepted inherits it (Linux).
  acceptor.setNoDelay(true);
  acceptor.onconnection = (_error, handle) => {
    if (handle) accept(handle);
  };
  return true;
}
