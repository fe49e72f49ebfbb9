import { networkOf } from '../../../refusals/network.ts';
import type { DataPlaneOptions } from '../../port.ts';
import { STALL_RULE } from '../../stall-rule.ts';
import { Faults } from '../faults.ts';
import { crowdingOf, type Holding } from './crowding.ts';
import { Direction, type Seen } from './direction.ts';
import {
  type Ends,
  leastOf,
  overheadOf,
  type Queues,
  readShareBytes,
  readTcpBytes,
  readTcpQueues,
  SocketKeys,
  type TcpBytes,
  type TcpQueues,
} from './queues.ts';

const LOOK_MS = 500;
/** Of the limit: below one of so many parts of it in all of TCP, nobody can hold too much, and nothing is looked at. */
const SCARCE_PARTS = 2;
const NO_QUEUES: Queues = { unsent: 0, unread: 0 };

/** A socket: how much it was given to send, and how much of that the kernel has not taken. */
export interface Receiver extends Ends {
  readonly bytesWritten: number;
  readonly writableLength: number;
}

const mayOweMuch = ({ bytesWritten }: Receiver) => bytesWritten > STALL_RULE.fewBytes;

/** All connections, at one moment. */
interface Look {
  readonly queuesOf: (receiver: Receiver) => Queues;
  /** Memory for each byte. */
  readonly overhead: number;
  readonly nowMs: number;
  /** Any direction may have on its way. */
  readonly fewBytes: number;
}

/** A client's connection and those to instances that it has now. */
class Followed implements Holding {
  readonly instances = new Set<Receiver>();
  readonly cut: () => void;
  readonly #client: Receiver;
  #network: string | null | undefined;
  /** Wait for the receivers to take what they were sent. */
  #waiting: (() => void)[] = [];
  /** Only where it was looked at. */
  #directions = new Map<Receiver, Direction>();

  constructor(client: Receiver, cut: () => void) {
    this.#client = client;
    this.cut = cut;
  }

  get network(): string | null {
    this.#network ??= networkOf(this.#client.remoteAddress ?? '');
    return this.#network;
  }

  /** Whether more may be on its way to a receiver than anybody may have. */
  get mayHoldMuch(): boolean {
    return mayOweMuch(this.#client) || [...this.instances].some(mayOweMuch);
  }

  whenTaken(then: () => void): void {
    this.#waiting.push(then);
  }

  taken(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const then of waiting) then();
  }

  get stalledBytes(): number {
    return this.#sum((direction) => (direction.pace === 'stalled' ? direction.heldBytes : 0));
  }

  get heldBytes(): number {
    return this.#sum(({ heldBytes }) => heldBytes);
  }

  get movedMs(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { pace, movedMs } of this.#directions.values())
      if (pace === 'stalled') first = Math.min(first, movedMs);
    return first;
  }

  get takenBytes(): number {
    return this.#sum((direction) => direction.takenBytes);
  }

  #sum(bytesOf: (direction: Direction) => number): number {
    let sum = 0;
    for (const direction of this.#directions.values()) sum += bytesOf(direction);
    return sum;
  }

  /** Each direction: who receives, and what its senders sent that is not read yet. */
  look(look: Look): void {
    const { queuesOf, fewBytes } = look;
    const before = this.#directions;
    this.#directions = new Map();
    let unread = 0;
    for (const instance of this.instances) unread += queuesOf(instance).unread;
    this.#lookAt(this.#client, unread, look, before);
    let sent = queuesOf(this.#client).unread;
    for (const instance of this.instances) {
      this.#lookAt(instance, sent, look, before);
      sent = 0;
    }
    const isTaken = (receiver: Receiver) => queuesOf(receiver).unsent <= fewBytes;
    if (isTaken(this.#client) && [...this.instances].every(isTaken)) this.taken();
  }

  #lookAt(
    receiver: Receiver,
    unread: number,
    { queuesOf, overhead, nowMs, fewBytes }: Look,
    before: ReadonlyMap<Receiver, Direction>,
  ): void {
    const { bytesWritten, writableLength: waiting } = receiver;
    const { unsent } = queuesOf(receiver);
    const seen: Seen = {
      taken: bytesWritten - waiting - unsent,
      bytes: waiting + (unsent + unread) * overhead,
    };
    const direction = before.get(receiver) ?? new Direction(seen, nowMs);
    direction.look(seen, nowMs, fewBytes);
    this.#directions.set(receiver, direction);
  }

  calm(): void {
    this.#directions.clear();
    this.taken();
  }
}

export interface StallOptions extends Pick<DataPlaneOptions, 'onTrouble'> {
  /** What stalled receivers may hold together; 0 for a part of what TCP may have. */
  readonly limitBytes: number;
  /** One of so many parts of that part. */
  readonly parts: number;
}

/**
 * Connections whose receivers do not take what comes for them: that stays in the kernel, up to tens of MB in two sockets, and once all of
 * TCP has more than the kernel likes (tcp_mem in tcp(7)), every connection of the machine gets next to nothing. Node cannot bound a socket's
 * buffers, and tells nothing of them; so where TCP has much, this reads in proc(5) who holds it, and ends connections by STALL_RULE.
 */
export class Stalls {
  readonly #options: StallOptions;
  readonly #followed = new Map<Receiver, Followed>();
  readonly #keys = new SocketKeys();
  #limitBytes: Promise<number> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  #isScarce = false;
  #heldBytes = 0;
  readonly #faults: Faults;

  constructor(options: StallOptions) {
    this.#options = options;
    const message = 'the rule of stalled connections met a fault and goes on';
    this.#faults = new Faults(options.onTrouble, message);
  }

  /** What slow and stalled receivers held when it was last looked. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Until `forget`. @param cut ends the connection with a reset: its memory is free at once */
  follow(client: Receiver, cut: () => void): void {
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS);
    this.#followed.set(client, new Followed(client, cut));
  }

  forget(client: Receiver): void {
    this.#followed.delete(client);
    if (this.#followed.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#isScarce = false;
    this.#heldBytes = 0;
  }

  /** What passes between a client and this instance from now on, until `part`, is the client's. */
  join(client: Receiver, instance: Receiver): void {
    this.#followed.get(client)?.instances.add(instance);
  }

  part(client: Receiver, instance: Receiver): void {
    this.#followed.get(client)?.instances.delete(instance);
  }

  /** Whether to close the connection now would leave much to the kernel for minutes, without its counting as anybody's. */
  mayHold(client: Receiver): boolean {
    return this.#isScarce && this.#followed.get(client)?.mayHoldMuch === true;
  }

  /** The same of one socket, of a client or of an instance, that nobody follows. */
  mayOwe(receiver: Receiver): boolean {
    return this.#isScarce && mayOweMuch(receiver);
  }

  /** Calls back at once, or where the connection may hold much, when its receivers have taken it. */
  whenTaken(client: Receiver, then: () => void): void {
    if (this.mayHold(client)) this.#followed.get(client)!.whenTaken(then);
    else then();
  }

  async #limit(): Promise<number> {
    const { limitBytes, parts } = this.#options;
    if (limitBytes > 0) return limitBytes / parts;
    this.#limitBytes ??= readShareBytes();
    return (await this.#limitBytes) / parts;
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const limit = await this.#limit();
      const tcpBytes = await readTcpBytes();
      this.#isScarce = tcpBytes === undefined || tcpBytes > limit / SCARCE_PARTS;
      if (this.#isScarce) {
        const queues = await readTcpQueues();
        this.#lookAtAll(queues, [tcpBytes, await readTcpBytes()], limit);
      } else this.#calm();
    } catch (error) {
      this.#faults.tell(error);
    } finally {
      this.#isLooking = false;
    }
  }

  /** @param tcpBytes of all of TCP, before and after the queues were read */
  #lookAtAll({ bySocket, bytes }: TcpQueues, tcpBytes: TcpBytes, limit: number): void {
    const nowMs = performance.now();
    const overhead = overheadOf(tcpBytes, bytes);
    // So many connections may be open that little of each is much.
    const fewBytes = leastOf(tcpBytes) > limit ? STALL_RULE.fewScarceBytes : STALL_RULE.fewBytes;
    const queuesOf = (receiver: Receiver) => {
      const key = this.#keys.of(receiver);
      return (key && bySocket.get(key)) || NO_QUEUES;
    };
    this.#each(this.#followed.values(), (one) => one.look({ queuesOf, overhead, nowMs, fewBytes }));
    this.#each(crowdingOf([...this.#followed.values()], limit), (one) => one.cut());
    this.#heldBytes = [...this.#followed.values()].reduce((sum, { heldBytes }) => sum + heldBytes, 0);
  }

  #calm(): void {
    this.#heldBytes = 0;
    this.#each(this.#followed.values(), (one) => one.calm());
  }

  #each(all: Iterable<Followed>, act: (one: Followed) => void): void {
    for (const one of [...all]) this.#faults.attempt(act, one);
  }
}
