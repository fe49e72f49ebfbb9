import { getSystemErrorName } from 'node:util';
import type { HandleName, Request, TcpHandle, TcpHandles } from './tcp-handles.ts';
import type { Wire, WireOwner } from './wire.ts';

const BUFFER_BYTES = 64 * 1024;
/** A read of less shows that not much is moving any more. */
const SMALL_READ_BYTES = 4 * 1024;
/** Of libuv: the end of the stream; ended without waiting; not connected any more. */
const EOF = -4095;
const SHUT_AT_ONCE = 1;
const ENOTCONN = -107;

/**
 * All wires read into one buffer, of which little is copied. One that moves much has a buffer of its own, which is passed on
 * without a copy: it is not read into again before what is in it is taken.
 */
const shared = Buffer.allocUnsafeSlow(BUFFER_BYTES);

/** A write that is done at once, as nearly all are, leaves its request for the next. */
let spareRequest: Request | undefined;

function errorOf(status: number): Error {
  const code = getSystemErrorName(status);
  return Object.assign(new Error(`the connection broke: ${code}`), { code });
}

function onRead(this: TcpHandle): Uint8Array | undefined {
  return (this.wire as HandleWire).take();
}

function onConnected(this: Request, status: number): void {
  (this.wire as HandleWire).connected(status);
}

function onWritten(this: Request, status: number): void {
  (this.wire as HandleWire).written(status);
}

function onShut(this: Request): void {
  (this.wire as HandleWire).shut();
}

/** A wire over one of Node's TCP streams, without the socket. */
export class HandleWire implements Wire {
  readonly #handles: TcpHandles;
  readonly #handle: TcpHandle;
  readonly #owner: WireOwner;
  /** Its own buffer, while much is moving. */
  #own: Uint8Array | undefined;
  #unwritten = 0;
  #isReading = false;
  #hasPeerEnded = false;
  #isEnding = false;
  #isOver = false;
  #peer: HandleName | undefined;

  constructor(handles: TcpHandles, handle: TcpHandle, owner: WireOwner) {
    this.#handles = handles;
    this.#handle = handle;
    this.#owner = owner;
    handle.wire = this;
    handle.onread = onRead;
    handle.useUserBuffer(shared);
  }

  static connect(handles: TcpHandles, ipv6: string, port: number, owner: WireOwner): HandleWire {
    const handle = handles.createSocket();
    const wire = new HandleWire(handles, handle, owner);
    handle.setNoDelay(true);
    const request = new handles.ConnectRequest();
    request.oncomplete = onConnected;
    request.wire = wire;
    const error = handle.connect6(request, ipv6, port);
    if (error !== 0) process.nextTick(() => wire.connected(error));
    return wire;
  }

  get remoteAddress(): string | undefined {
    return this.#peerName.address;
  }

  get remotePort(): number | undefined {
    return this.#peerName.port;
  }

  get #peerName(): HandleName {
    if (this.#peer === undefined) {
      this.#peer = {};
      this.#handle.getpeername(this.#peer);
    }
    return this.#peer;
  }

  get localAddress(): string | undefined {
    return this.#localName().address;
  }

  get localPort(): number | undefined {
    return this.#localName().port;
  }

  #localName(): HandleName {
    const name: HandleName = {};
    this.#handle.getsockname(name);
    return name;
  }

  get hasUnwritten(): boolean {
    return this.#unwritten > 0;
  }

  read(): void {
    if (this.#isReading || this.#isOver || this.#hasPeerEnded) return;
    this.#isReading = true;
    const error = this.#handle.readStart();
    if (error !== 0) process.nextTick(() => this.#break(error));
  }

  pause(): void {
    if (!this.#isReading || this.#isOver) return;
    this.#isReading = false;
    this.#handle.readStop();
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isOver) return true;
    const { state, wasAsyncAt, WriteRequest } = this.#handles;
    const request = spareRequest ?? new WriteRequest();
    spareRequest = undefined;
    const error = this.#handle.writeBuffer(request, bytes);
    if (error !== 0) {
      this.#break(error);
      return true;
    }
    if (state[wasAsyncAt] === 0) {
      spareRequest = request;
      return this.#unwritten === 0;
    }
    request.oncomplete = onWritten;
    request.wire = this;
    request.bytes = bytes;
    this.#unwritten++;
    return false;
  }

  end(): void {
    if (this.#isOver || this.#isEnding) return;
    this.#isEnding = true;
    const request = new this.#handles.ShutdownRequest();
    request.oncomplete = onShut;
    request.wire = this;
    const status = this.#handle.shutdown(request);
    if (status === SHUT_AT_ONCE || status === ENOTCONN) process.nextTick(() => this.shut());
    else if (status !== 0) process.nextTick(() => this.#break(status));
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handle.close();
  }

  reset(): void {
    if (this.#isOver) return;
    // libuv refuses to reset what is being shut, and Node would leave it open for ever (see cut-off.ts).
    if (this.#isEnding) this.close();
    else {
      this.#isOver = true;
      this.#handle.reset();
    }
  }

  #break(status: number): void {
    if (this.#isOver) return;
    this.close();
    this.#owner.onBroken(this, errorOf(status));
  }

  /** Something was read, or reading is over; the answer is where the next bytes go, if that changes. */
  take(): Uint8Array | undefined {
    const { state, bytesOrErrorAt } = this.#handles;
    const size = state[bytesOrErrorAt]!;
    if (size === 0 || this.#isOver) return undefined;
    if (size > 0) return this.#pass(size);
    if (size !== EOF) this.#break(size);
    else {
      this.#isReading = false;
      this.#hasPeerEnded = true;
      this.#owner.onEnd(this);
    }
    return undefined;
  }

  #pass(size: number): Uint8Array | undefined {
    const own = this.#own;
    if (own) {
      this.#owner.onBytes(this, own.subarray(0, size));
      // Paused, what was passed on is still in it.
      if (size > SMALL_READ_BYTES || !this.#isReading) return undefined;
      this.#own = undefined;
      return shared;
    }
    const bytes = Buffer.allocUnsafe(size);
    bytes.set(size === BUFFER_BYTES ? shared : shared.subarray(0, size));
    this.#owner.onBytes(this, bytes);
    if (size < BUFFER_BYTES) return undefined;
    this.#own = Buffer.allocUnsafeSlow(BUFFER_BYTES);
    return this.#own;
  }

  connected(status: number): void {
    if (this.#isOver) return;
    if (status !== 0) this.#break(status);
    else this.#owner.onOpen(this);
  }

  written(status: number): void {
    this.#unwritten--;
    if (this.#isOver) return;
    if (status !== 0) this.#break(status);
    else if (this.#unwritten === 0) this.#owner.onDrained(this);
  }

  shut(): void {
    if (!this.#isOver) this.#owner.onEnded(this);
  }
}
