import type { Socket } from 'node:net';
import { type Held, networkKeyOf, type YieldingShares } from '@skerry/kit';
import { ALERT, alertRecord } from '../../../tls/alert.ts';
import { ClientHelloReader, type HelloAnswer } from '../../../tls/client-hello.ts';
import type { TlsCounters, TlsOutcome } from '../../figures.ts';
import type { DataPlaneLimits, DataPlaneOptions } from '../../port.ts';
import { ConnectTimeoutError, failureOf } from '../connect.ts';
import { clientKey } from '../counts.ts';
import { LINGER_BYTES } from '../linger.ts';
import type { Routed, RouteTable } from '../routes.ts';
import type { Stalls } from '../stalls/stalls.ts';
import type { Uploads } from '../uploads.ts';
import type { Crowd, Waiting } from './crowd.ts';
import { proxyHeader } from './proxy-header.ts';
import type { TlsSide, Trace } from './side.ts';
import type { Stage, Staged, Stages } from './stages.ts';
import { Wire, type WireOwner } from './wire.ts';

export interface TlsOptions {
  readonly routes: RouteTable;
  readonly upstreamPort: number;
  readonly limits: DataPlaneLimits;
  readonly counters: TlsCounters;
  readonly side: TlsSide;
  readonly stalls: Stalls;
  readonly onTrouble: DataPlaneOptions['onTrouble'];
}

/** What the connections of one listener share. */
export interface TlsContext extends TlsOptions {
  readonly stages: Stages<TlsConnection>;
  /** Whose hellos are not whole. */
  readonly crowd: Crowd<TlsConnection>;
  /** Of the listener. */
  readonly places: YieldingShares;
  readonly uploads: Uploads;
  /** Of all hellos that are not whole. */
  readonly kept: { bytes: number };
}

/** Who has one of so many parts of the places without a hello is one of a crowd. */
const CROWDING_PARTS = 256;
const FEWEST_OF_MANY = 2;
/** Nearly all hellos are smaller. Of larger ones, nobody has more memory than this for what is not whole. */
const SMALL_HELLO_BYTES = 4096;
const MAX_KEPT_BYTES = 32 * 1024 * 1024;

type DecidedAnswer = Exclude<HelloAnswer, { kind: 'need_more' }>;

/** One client, and once its name is known the instance behind it, until both have ended. */
export class TlsConnection implements WireOwner, Staged, Waiting {
  stage: Stage | undefined;
  tick = 0;
  readonly #context: TlsContext;
  readonly #client: Wire;
  readonly clientKey: string;
  readonly networkKey: string | undefined;
  #place: Held | undefined;
  readonly #trace: Trace | undefined;
  readonly #reader = new ClientHelloReader();
  #instance: Wire | undefined;
  #route: Routed | undefined;
  /** What came behind the hello before the instance took the connection. */
  #early: Uint8Array | undefined;
  /** Bytes of a hello that is not whole. */
  #kept = 0;
  #hasClientEnded = false;
  #ends = 0;
  #endsSent = 0;
  #lingered = 0;
  #bytesToInstance = 0;
  #bytesToClient = 0;

  constructor(context: TlsContext, client: Socket) {
    this.#context = context;
    this.#client = new Wire(client, this);
    this.clientKey = clientKey(this.#client.remoteAddress);
    this.networkKey = networkKeyOf(this.clientKey);
    this.#trace = context.side.trace(this.#client);
  }

  /** Waits for the hello; closes at once where there are too many connections, or too many of this client. */
  start(): void {
    const { stages, crowd, limits, counters } = this.#context;
    const refused = this.#takePlace();
    if (refused) this.#count(refused);
    else {
      // From the first moment to the complete hello, however many bytes keep coming.
      stages.enter(this, 'undecided');
      crowd.enter(this);
      counters.figures.open++;
      this.#client.read();
      if (stages.count('undecided') > limits.maxUndecided) this.#crowdOut();
      return;
    }
    this.#client.close();
  }

  #crowdOut(): void {
    const { stages, crowd, limits } = this.#context;
    const many = Math.max(FEWEST_OF_MANY, Math.floor(limits.maxUndecided / CROWDING_PARTS));
    const [oldest] = stages.in('undecided');
    (crowd.oldestOfMost(many) ?? oldest)?.giveUp('crowded_out');
  }

  #takePlace(): 'client_limit' | 'too_many' | undefined {
    const { side, places } = this.#context;
    const key = this.clientKey;
    if (!side.perClient.enter(key)) return 'client_limit';
    const place = places.take({ key, isExempt: false }, () => this.#yield());
    if (typeof place === 'object') this.#place = place;
    else side.perClient.leave(key);
    return this.#place ? undefined : 'too_many';
  }

  /** Its place goes to a client that had none. */
  #yield(): void {
    this.#context.counters.figures.yielded++;
    if (this.stage === 'undecided' || this.stage === 'connecting') this.#count('crowded_out');
    this.cut();
  }

  giveUp(outcome: TlsOutcome): void {
    this.#count(outcome);
    this.destroy();
  }

  /** Ends it, with an orderly end of what is open. */
  destroy(): void {
    this.#client.close();
    this.#instance?.close();
    this.#leave();
  }

  /** Ends it so that whoever is left learns that the stream is cut, which an orderly end would hide. */
  cut(): void {
    this.#client.reset();
    this.#instance?.reset();
    this.#leave();
  }

  #leave(): void {
    if (this.stage === undefined) return;
    const { stages, side, stalls, uploads, counters, routes } = this.#context;
    stages.leave(this);
    if (this.#instance) uploads.leave(this.#instance);
    stalls.forget(this.#client);
    this.#forgetHello();
    side.perClient.leave(this.clientKey);
    this.#place?.release();
    if (this.#route !== undefined) {
      side.perInstance.leave(this.#route);
      routes.countBytes(this.#route, this.#bytesToInstance, this.#bytesToClient);
    }
    counters.figures.open--;
    counters.figures.bytesToInstances += this.#bytesToInstance;
    counters.figures.bytesToClients += this.#bytesToClient;
    this.#trace?.tell(this.#bytesToInstance, this.#bytesToClient);
  }

  #count(outcome: TlsOutcome): void {
    this.#context.counters.outcomes[outcome]++;
    if (this.#trace) this.#trace.outcome = outcome;
    this.#context.side.tellRefused(this.#client, outcome);
  }

  onBytes(wire: Wire, bytes: Uint8Array): void {
    switch (this.stage) {
      case 'undecided':
        this.#hear(bytes);
        break;
      case 'connecting':
        this.#early = bytes;
        wire.pause();
        break;
      case 'open':
        this.#relay(wire, bytes);
        break;
      case 'lingering':
        this.#lingered += bytes.length;
        if (this.#lingered > LINGER_BYTES) this.destroy();
        break;
    }
  }

  #hear(bytes: Uint8Array): void {
    const { kept } = this.#context;
    const answer = this.#reader.push(bytes);
    if (answer.kind !== 'need_more') {
      this.#forgetHello();
      this.#act(answer);
      return;
    }
    this.#kept += bytes.length;
    kept.bytes += bytes.length;
    if (this.#kept > SMALL_HELLO_BYTES && kept.bytes > MAX_KEPT_BYTES) this.giveUp('crowded_out');
  }

  /** It is whole, or will never be. */
  #forgetHello(): void {
    this.#context.crowd.leave(this);
    this.#context.kept.bytes -= this.#kept;
    this.#kept = 0;
  }

  #act(answer: DecidedAnswer): void {
    switch (answer.kind) {
      case 'server_name':
        this.#connect(answer.serverName);
        break;
      case 'no_server_name':
        this.#refuse('no_server_name', alertRecord(ALERT.unrecognizedName));
        break;
      case 'malformed':
        this.#refuse('malformed', alertRecord(ALERT.decodeError));
        break;
      case 'not_tls':
        this.#refuse('not_tls');
        break;
    }
  }

  /** The last word, then the end; what still comes is dropped, so that the client gets to read that word (see linger.ts). */
  #refuse(outcome: TlsOutcome, alert?: Uint8Array): void {
    this.#count(outcome);
    this.#context.stages.enter(this, 'lingering');
    if (alert) this.#client.write(alert);
    this.#client.end();
  }

  #connect(hostname: string): void {
    const { routes, side, stages, upstreamPort } = this.#context;
    const route = routes.get(hostname);
    if (route === undefined) {
      this.#refuse('unknown_name', alertRecord(ALERT.unrecognizedName));
    } else if (!side.perInstance.enter(route)) {
      this.#refuse('instance_limit', alertRecord(ALERT.internalError));
    } else {
      this.#route = route;
      if (this.#trace) this.#trace.hostname = hostname;
      this.#bytesToInstance = this.#reader.bytes.length;
      stages.enter(this, 'connecting');
      this.#instance = Wire.connect(route.ipv6, upstreamPort, this);
    }
  }

  onOpen(instance: Wire): void {
    const { routes, stages, stalls, uploads } = this.#context;
    const route = this.#route!;
    this.#count('relayed');
    routes.noteAttempt(route);
    routes.countConnection(route);
    stages.enter(this, 'open');
    stalls.follow(this.#client, () => {
      this.#count('stalled');
      this.cut();
    });
    stalls.join(this.#client, instance);
    uploads.enter(instance, this.#client);
    let isTaken = true;
    if (route.proxyHeader) isTaken = instance.write(proxyHeader(this.#client));
    isTaken = instance.write(this.#reader.bytes) && isTaken;
    instance.read();
    if (this.#early) {
      this.#bytesToInstance += this.#early.length;
      isTaken = instance.write(this.#early) && isTaken;
    }
    if (this.#hasClientEnded) this.onEnd(this.#client);
    else if (isTaken) this.#client.read();
    else this.#client.pause();
  }

  #relay(from: Wire, bytes: Uint8Array): void {
    this.#context.stages.touch(this);
    if (from === this.#client) this.#bytesToInstance += bytes.length;
    else this.#bytesToClient += bytes.length;
    if (!this.#other(from).write(bytes)) from.pause();
  }

  #other(wire: Wire): Wire {
    return wire === this.#client ? this.#instance! : this.#client;
  }

  onDrained(wire: Wire): void {
    if (this.stage === 'open') this.#other(wire).read();
  }

  onEnd(wire: Wire): void {
    switch (this.stage) {
      case 'undecided':
        this.giveUp('gone');
        break;
      case 'connecting':
        this.#hasClientEnded = true;
        break;
      case 'open':
        // To close both tells the other side as well, at half the price.
        if (++this.#ends === 2 && !wire.writableLength && !this.#other(wire).writableLength) this.#finish();
        else this.#context.stalls.whenTaken(this.#client, () => this.#other(wire).end());
        break;
      case 'lingering':
        this.destroy();
        break;
    }
  }

  onEnded(_wire: Wire): void {
    // Each side is ended behind the other's end, so both directions are over.
    if (this.stage === 'open' && ++this.#endsSent === 2) this.#finish();
  }

  /** All is said; but what a receiver has yet to take would be the kernel's memory for minutes, without counting as anybody's. */
  #finish(): void {
    this.#context.stalls.whenTaken(this.#client, () => this.destroy());
  }

  onBroken(wire: Wire, error: Error): void {
    switch (this.stage) {
      case 'undecided':
        this.giveUp('gone');
        break;
      case 'connecting':
        if (wire === this.#client) this.giveUp('gone');
        else this.#connectFailed(error);
        break;
      case 'open':
        this.cut();
        break;
      case 'lingering':
        this.destroy();
        break;
    }
  }

  #connectFailed(error: Error): void {
    this.#context.routes.noteAttempt(this.#route!, failureOf(error));
    this.#count('connect_failed');
    this.cut();
  }

  onExpired(): void {
    switch (this.stage) {
      case 'undecided':
        this.giveUp('hello_timeout');
        break;
      case 'connecting':
        this.#connectFailed(new ConnectTimeoutError('the instance did not answer in time'));
        break;
      case 'open':
        this.cut();
        break;
      case 'lingering':
        this.destroy();
        break;
    }
  }
}
