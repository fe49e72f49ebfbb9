import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  LIMITS,
  NETWORK_CHANNEL,
  parseNodeContent,
  parseRunnersContent,
  type Reason,
} from '@skerry/protocol';
import { parseAnnouncement } from './announcement.ts';
import { listRunners } from './runners.ts';
import type { Node } from './view.ts';

const digits = (number: number, length: number) => number.toString(16).padStart(length, '0');

const content = {
  url: 'https://node.example',
  ipv6_prefix: '2a00:1:2:3::/64',
  capacity: { cpu: 1, memory_mib: 1, disk_gib: 1 },
  features: ['program:python3'],
  version: '0',
  announced_at_ms: 1,
  reason: null as Reason | null,
};

/** A node as whatever a core node takes as an announcement makes it. */
function announced(number: number, said: Partial<typeof content> = {}): Node {
  const post = { type: 'net-node', content: parseNodeContent({ ...content, ...said }) };
  const message = {
    ...{ type: 'POST', channel: NETWORK_CHANNEL.compute, content: post, timestamp: 1 },
    ...{ sender: `0x${digits(number, 40)}`, item_hash: digits(number, 64) },
  };
  return { ...parseAnnouncement(message as never), nodeId: digits(number, 64) };
}

/** Throws where a core node refuses the list. */
const publish = (nodes: readonly Node[], isListed?: (address: string) => boolean) => {
  const runners = listRunners(nodes, isListed);
  parseRunnersContent({ runners, decided_at_ms: 1 });
  return runners.map(({ node_id: id }) => Number.parseInt(id, 16));
};

test('whatever one node announces, a core node takes the list of the others', () => {
  const honest = announced(1);
  const manyRuntimes = Array.from({ length: 64 }, (_, i) => `program:${i}`);
  assert.deepEqual(publish([honest, announced(2, { features: manyRuntimes })]), [1, 2]);
  assert.deepEqual(
    publish([honest, announced(2, { url: `https://node.example/${'a'.repeat(2_000)}` })]),
    [1],
  );
  const twice = announced(2, { features: ['program:wasm', 'program:wasm'] });
  assert.deepEqual(listRunners([twice])[0]!.runtimes, ['wasm']);
});

test('an announcement whose URL grows where it is asked for is none', () => {
  assert.throws(() => announced(2, { url: `https://node.example/${'é'.repeat(2_000)}` }), {
    code: 'INVALID_CONTENT',
  });
});

test('strangers whose ids are small drive out no node that the operator lists, and others only by their number', () => {
  const strangers = Array.from({ length: 300 }, (_, i) => announced(i + 1));
  const listed = announced(0xffff);
  const told = publish([...strangers, listed], (address) => address === listed.address);
  assert.equal(told.length, 256);
  assert.equal(told.at(-1), 0xffff);
});

test('the longest list travels inside its message', () => {
  const longest = `https://node.example/${'a'.repeat(600)}`;
  let [from, to] = [longest.length - 600, longest.length];
  while (from < to) {
    const half = Math.ceil((from + to) / 2);
    if (publish([announced(1, { url: longest.slice(0, half) })]).length > 0) from = half;
    else to = half - 1;
  }
  const nodes = Array.from({ length: 300 }, (_, i) => announced(i + 1, { url: longest.slice(0, from) }));
  const runners = listRunners(nodes);
  assert.equal(runners.length, 256);
  const post = { type: 'net-runners', content: { runners, decided_at_ms: Number.MAX_SAFE_INTEGER } };
  // Address and time come before the content.
  assert.ok(JSON.stringify(post).length <= LIMITS.inlineContentChars - 256);
  assert.ok(JSON.stringify(post).length > LIMITS.inlineContentChars * 0.98);
});
