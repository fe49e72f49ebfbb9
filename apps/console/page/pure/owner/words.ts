import { DOMAINS_KEY } from '@skerry/protocol/forms';
import { cores } from '../format.ts';

/** What somebody is about to sign, in words. */
export interface Words {
  /** What happens when it is signed: one sentence. */
  readonly title: string;
  readonly facts: readonly (readonly [string, string])[];
  /** Of a message; null where the text is none. */
  readonly type: string | null;
  /** Whether it is of a form that the console makes itself. What is not, nobody should sign. */
  readonly isKnown: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const shown = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value ?? null));
const fact = (name: string, value: unknown): readonly (readonly [string, string])[] =>
  value === undefined ? [] : [[name, shown(value)]];

interface Told {
  readonly title: string;
  readonly facts?: readonly (readonly [string, string])[];
}

const instance = (content: Fields): Told => {
  const { firewall } = content;
  const { allowedPorts, allowedUdpPorts } = isFields(firewall) ? firewall : {};
  const tcp = Array.isArray(allowedPorts) ? allowedPorts : [22];
  const udp = Array.isArray(allowedUdpPorts) ? allowedUdpPorts.map((port) => `udp:${port}`) : [];
  const ports = [...tcp, ...udp];
  return {
    title: `Ask for the machine ${shown(content.name)}`,
    facts: [
      ['size', `${cores(Number(content.cpu))}, ${content.memory} MiB of memory, ${content.disk} GiB of disk`],
      ...fact('image', content.image),
      ['open to everybody', ports.length === 0 ? 'no port' : `port ${ports.join(', ')}`],
      ...fact('ssh key', content.ssh_key),
      ...fact('description', content.description),
    ],
  };
};

const CONTROL: Readonly<Record<string, string>> = {
  start: 'Start the machine',
  stop: 'Stop the machine',
  restart: 'Restart the machine',
};

const program = (content: Fields): Told => ({
  title: `Publish the program ${shown(content.name)}`,
  facts: [
    ...fact('runtime', content.runtime),
    ['memory', `${content.memory} MiB`],
    ['time', `${content.timeout} seconds a call`],
    [
      'code',
      typeof content.code === 'string' ? `${content.code.length} characters, anybody can read it` : '',
    ],
  ],
});

const hashesOf = ({ hashes }: Fields) => (Array.isArray(hashes) ? hashes.map(shown) : []);

/** Names that lead to machines: the only list of its owner's that the console changes. */
function domains({ key, content }: Fields): Told | undefined {
  if (key !== DOMAINS_KEY || !isFields(content)) return undefined;
  const [first, ...others] = Object.entries(content);
  if (!first || others.length > 0) return undefined;
  const [name, claim] = first;
  return isFields(claim)
    ? { title: `Lead ${name} to the machine`, facts: fact('machine', claim.message_id) }
    : { title: `Lead ${name} to no machine any more` };
}

const MESSAGES: Readonly<Record<string, (content: Fields) => Told | undefined>> = {
  AGGREGATE: domains,
  INSTANCE: instance,
  PROGRAM: program,
  INSTANCE_CONTROL: (content) => ({
    title: CONTROL[shown(content.action)] ?? `Do ${shown(content.action)} with the machine`,
    facts: fact('machine', content.instance_id),
  }),
  INSTANCE_UPDATE: ({ instance_id: id, ...changes }) => ({
    title: 'Change the machine',
    facts: [...fact('machine', id), ...Object.entries(changes).flatMap(([name, value]) => fact(name, value))],
  }),
  FORGET: (content) => ({
    title: 'Take messages back: what they made ends, and its data is deleted',
    facts: [
      ...hashesOf(content).map((hash) => ['message', hash] as const),
      ...fact('reason', content.reason),
    ],
  }),
  STORE: (content) => ({
    title: 'Keep a file that everybody can read',
    facts: [...fact('file', content.item_hash), ...fact('bytes', content.size), ...fact('name', content.ref)],
  }),
  WEBHOOK: ({ action, ...rest }) => ({
    title: action === undefined ? 'Register a webhook' : `Ask about your webhooks: ${shown(action)}`,
    facts: Object.entries(rest).flatMap(([name, value]) =>
      fact(name, name === 'secret' ? 'not shown' : value),
    ),
  }),
};

const message = ({ type, content, chain, channel, timestamp }: Fields): Words => {
  const tell = MESSAGES[shown(type)];
  const told = tell && isFields(content) ? tell(content) : undefined;
  return {
    title: told?.title ?? `Send a message of the type ${shown(type)}`,
    facts: [
      ...(told?.facts ?? []),
      ...(isFields(content) ? fact('on behalf of', content.address) : []),
      ...fact('channel', channel),
      ...fact('chain', chain),
      ...fact('time', typeof timestamp === 'number' ? new Date(timestamp * 1_000).toISOString() : timestamp),
    ],
    type: shown(type),
    isKnown: told !== undefined,
  };
};

const pass = ({ domain, expires }: Fields): Words => ({
  title: `Let this tab speak for you to the compute node ${shown(domain)}, for an hour`,
  facts: [
    ...fact('node', domain),
    ...fact('until', expires),
    ['allows', 'what an owner may ask of a machine'],
  ],
  type: null,
  isKnown: true,
});

const HASH = /^[0-9a-f]{64}$/;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The words of a text that is to be signed: a message, an owner's pass for a node, or the hash of a file. */
export function wordsOf(text: string): Words {
  if (HASH.test(text))
    return {
      title: 'Keep a file that everybody can read',
      facts: [['SHA-256 of the file', text]],
      type: null,
      isKnown: true,
    };
  const value = parse(text);
  if (isFields(value) && typeof value.type === 'string' && value.content !== undefined) return message(value);
  if (isFields(value) && isFields(value.pubkey) && value.alg === 'ECDSA') return pass(value);
  return { title: 'An unknown text', facts: [], type: null, isKnown: false };
}
