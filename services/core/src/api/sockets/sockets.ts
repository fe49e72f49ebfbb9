import {
  type Client,
  type Handlers,
  type Logger,
  type NoShare,
  takeUpgrade,
  upgradeOf,
  YieldingShares,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { SOCKETS_API } from '@skerry/protocol/api/core/sockets';
import type { FastifyReply } from 'fastify';
import { watchSockets } from '../../node/metrics/sockets.ts';
import type { Connection } from '../../notify/sockets/connection.ts';
import { Connections } from '../../notify/sockets/connections.ts';
import type { Form } from '../../notify/sockets/form.ts';
import { type Past, readHistory } from '../../notify/sockets/history.ts';
import { MessageFeed } from '../../notify/sockets/message-feed.ts';
import { StatusFeed } from '../../notify/sockets/status-feed.ts';
import type { MessageFilter } from '../../state/lists/properties.ts';
import { contentFormatOf, messageFilterOf } from '../deployed/lists.ts';
import type { Rooms, RouteSettings } from '../rooms.ts';

/** Seconds: a place is free when some reader leaves, whenever that is. */
const RETRY_AFTER = 10;

type Kind = 'messages' | 'status';

function refusalOf(reason: NoShare, { socketsPerClient }: RouteSettings): AppError {
  const details = { retry_after: RETRY_AFTER };
  return reason === 'share'
    ? new AppError('RATE_LIMITED', `a client may have ${socketsPerClient} WebSockets at once; close one`, {
        details,
      })
    : new AppError('OVERLOADED', 'all WebSockets are taken; try again later', { details });
}

/** Of a client that is connected. */
interface Place {
  /** Ends when the client is gone. */
  readonly gone: AbortSignal;
  /** Ends the connection, whose place is another client's by now. */
  end(): void;
}

type Used = Pick<
  Rooms,
  'answers' | 'longLists' | 'db' | 'commonDb' | 'events' | 'settings' | 'metrics' | 'clientOf' | 'signal'
>;

/** All WebSockets of a node: they share its feeds, and the places that there are. */
class Sockets {
  readonly #used: Used;
  readonly #shares: YieldingShares;
  readonly #connections: Connections;
  readonly #messages: MessageFeed;
  readonly #status: StatusFeed;
  readonly #connected: Record<Kind, number> = { messages: 0, status: 0 };
  readonly #refused: Record<Kind, number> = { messages: 0, status: 0 };
  readonly #yielded: Record<Kind, number> = { messages: 0, status: 0 };

  constructor(used: Used, log: Logger) {
    const { commonDb: db, events, metrics, signal, settings } = used;
    const { maxSockets: total, socketReserve: reserve, socketsPerClient: perClient } = settings;
    this.#used = used;
    this.#shares = new YieldingShares({ total, reserve, perClient });
    this.#connections = new Connections(signal);
    this.#messages = new MessageFeed({ db, events, connections: this.#connections, log, signal });
    this.#status = new StatusFeed(() => metrics.json(), log);
    const { counts } = this.#messages;
    watchSockets(metrics, total, () => ({
      open: this.#connected,
      refused: this.#refused,
      letGo: {
        messages: counts.letGo + this.#yielded.messages,
        status: this.#status.letGo + this.#yielded.status,
      },
      messages: counts.messages,
      restarts: counts.restarts,
    }));
  }

  async followMessages(filter: MessageFilter, past: Past, form: Form, reply: FastifyReply): Promise<void> {
    const place = this.#takePlace('messages', this.#used.clientOf(reply.request), reply);
    const { answers, longLists } = this.#used;
    const db = longLists.askedIn(this.#used.db, reply, () => place.gone);
    const history = answers.ofSocket(reply, upgradeOf(reply).socket);
    const reader = await this.#messages.join(filter, form);
    try {
      const before = await readHistory(db, filter, past, form, history.hold);
      history.send();
      if (reader.isOver)
        throw new AppError(
          'OVERLOADED',
          'too many messages arrived while your history was read; use narrower filters',
        );
      const connection = this.#open(place, reply);
      if (!connection) reader.end();
      else {
        reader.begin(connection, before, history.sent);
        if (reader.unread > 0) this.#connections.noteBehind(reader);
      }
    } catch (error) {
      reader.end();
      throw error;
    }
  }

  async followStatus(reply: FastifyReply): Promise<void> {
    const place = this.#takePlace('status', this.#used.clientOf(reply.request), reply);
    const first = await this.#status.current();
    const connection = this.#open(place, reply);
    if (connection) this.#status.add(connection, first);
  }

  /** Holds a place for as long as the client is connected, or until it yields. Throws RATE_LIMITED, OVERLOADED. */
  #takePlace(kind: Kind, client: Client, reply: FastifyReply): Place {
    const { socket } = upgradeOf(reply);
    const gone = new AbortController();
    const place: Place = { gone: gone.signal, end: () => socket.destroy() };
    const held = this.#shares.take(client, () => {
      this.#yielded[kind]++;
      place.end();
    });
    if (typeof held === 'string') {
      this.#refused[kind]++;
      throw refusalOf(held, this.#used.settings);
    }
    this.#connected[kind]++;
    const leave = () => {
      held.release();
      this.#connected[kind]--;
      gone.abort();
    };
    if (socket.closed) leave();
    else socket.once('close', leave);
    return place;
  }

  /** From here on, who yields is told why. undefined: the client is gone, or was refused. */
  #open(place: Place, reply: FastifyReply): Connection | undefined {
    const connection = this.#connections.open(takeUpgrade(reply));
    if (connection) place.end = () => connection.yield();
    return connection;
  }
}

/** The WebSockets of deployed nodes. */
export function socketHandlers(used: Used, log: Logger): Handlers<typeof SOCKETS_API> {
  const sockets = new Sockets(used, log);
  return {
    async watchMessages({ query, reply }) {
      upgradeOf(reply);
      const { history: count, sortBy, sortOrder } = query;
      const past = { count, sortBy, oldestFirst: sortOrder === 1 };
      await sockets.followMessages(messageFilterOf(query), past, contentFormatOf(query), reply);
      return reply;
    },
    async watchStatus({ reply }) {
      await sockets.followStatus(reply);
      return reply;
    },
  };
}
