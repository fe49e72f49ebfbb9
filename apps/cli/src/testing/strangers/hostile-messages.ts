import { createHash, randomBytes } from 'node:crypto';
import {
  buildNetworkMessage,
  createSigner,
  generatePrivateKey,
  type Signer,
  signMessage,
} from '@skerry/client';
import { NETWORK_CHANNEL, NETWORK_POST } from '@skerry/protocol';
import { codeOf, postJson } from './ask.ts';
import { type Actor, api, type Stage } from './places.ts';

/** Strangers who lie in what they sign. Their tries are counted, taken or refused; what they achieve is checked at the honest users. */

/** As fast as a node lets them: refusals say when. */
const PACE_MS = 50;

async function submit(stage: Stage, who: string, body: string, path = '/messages'): Promise<void> {
  const { places, caller, tally, signal } = stage;
  const core = places.cores[Math.floor(Math.random() * places.cores.length)]!;
  try {
    const asked = await caller.ask(`${api(core)}${path}`, postJson(body));
    tally.hostile(who, asked.status < 300 ? undefined : codeOf(asked));
  } catch (error) {
    if (!signal.aborted) tally.hostile(who, (error as NodeJS.ErrnoException).code ?? 'no answer');
  }
}

/** What the victim made that the delegate would like to have gone. */
export interface Target {
  readonly victim: Signer;
  /** May act for the victim no more. */
  readonly delegate: Signer;
  /** When it still could, Unix seconds. */
  readonly grantedAt: number;
  readonly hashes: readonly string[];
}

/** A delegate whose permission was revoked dates its messages back to when it had it. */
export const revokedDelegate = ({ victim, delegate, grantedAt, hashes }: Target): Actor => ({
  who: 'revoked delegate',
  async run(stage) {
    for (let n = 0; !stage.signal.aborted; n++) {
      const timestamp = grantedAt + (n % 60);
      const target = hashes[n % hashes.length]!;
      const drafts = [
        { type: 'FORGET', content: { hashes: [target] } },
        { type: 'INSTANCE_CONTROL', content: { instance_id: target, action: 'stop' } },
        { type: 'INSTANCE_UPDATE', content: { instance_id: target, firewall: { allowedPorts: [] } } },
        { type: 'POST', content: { type: 'amend', ref: target, content: { mine: true } } },
      ];
      const { body } = signMessage({ ...drafts[n % drafts.length]!, timestamp }, delegate);
      await submit(stage, 'revoked delegate', body);
      const content = { address: victim.address, hashes: [target] };
      const wire = buildNetworkMessage({ type: 'FORGET', content, time: timestamp }, delegate);
      await submit(stage, 'revoked delegate', wire.body);
      await stage.pause(PACE_MS);
    }
  },
});

/** Machines dated 1970 would be first in every queue and have every name. @param image a name, or the hash of a file */
export const backdater = (image: string): Actor => ({
  who: 'machines dated 1970',
  async run(stage) {
    for (let n = 0; !stage.signal.aborted; n++) {
      const content = {
        name: `first-${n}`,
        cpu: 1,
        memory: 512,
        disk: 4,
        image,
        ssh_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1zK0mPpV6c9nZ0Zc0YwQx1m3rXo2bVJm7y9yqzvWcS stranger',
      };
      const { body } = signMessage({ type: 'INSTANCE', content, timestamp: n % 2 }, stage.signer);
      await submit(stage, 'machines dated 1970', body, '/instances');
      await stage.pause(20 * PACE_MS);
    }
  },
});

/** Announces nodes at other people's places, with other people's prefixes and more room than there is. */
export const liarNode = (targets: readonly string[], prefixes: readonly string[]): Actor => ({
  who: 'lying nodes',
  async run(stage) {
    for (let n = 0; !stage.signal.aborted; n++) {
      const node = createSigner(generatePrivateKey());
      const content = {
        url: targets[n % targets.length]!,
        ipv6_prefix: prefixes[n % prefixes.length]!,
        capacity: { cpu: 4096, memory_mib: 64 * 1024 * 1024, disk_gib: 1024 * 1024 },
        features: ['instances', 'programs', 'python3', 'nodejs', 'wasm'],
        version: 'skerry-compute@0.1.0',
        reason: null,
        announced_at_ms: Date.now(),
      };
      const draft = {
        type: 'POST',
        content: { type: NETWORK_POST.node, content },
        channel: NETWORK_CHANNEL.compute,
      };
      await submit(stage, 'lying nodes', signMessage(draft, node).body);
      await stage.pause(10 * PACE_MS);
    }
  },
});

/** Says of somebody else's machine that it failed, and where it should go. */
export const liarStatus = (instanceIds: readonly string[]): Actor => ({
  who: 'forged statuses',
  async run(stage) {
    for (let n = 0; !stage.signal.aborted; n++) {
      const instance_id = instanceIds[n % instanceIds.length]!;
      const contents = [
        {
          type: NETWORK_POST.instanceStatus,
          content: {
            instance_id,
            phase: 'failed',
            reason: null,
            observed_at_ms: Date.now(),
            restart_id: null,
          },
        },
        {
          type: NETWORK_POST.allocation,
          content: {
            instance_id,
            node_id: createHash('sha256').update('nobody').digest('hex'),
            node_address: stage.signer.address,
            ipv6: '2001:db8::1',
            reason: null,
            decided_at_ms: Date.now(),
          },
        },
      ];
      const draft = { type: 'POST', content: contents[n % 2], channel: NETWORK_CHANNEL.compute };
      await submit(stage, 'forged statuses', signMessage(draft, stage.signer).body);
      await stage.pause(4 * PACE_MS);
    }
  },
});

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** A CIDv1 (dag-pb, sha2-256) of bytes that nobody has. */
function unknownCid(): string {
  const bytes = Uint8Array.from([0x01, 0x70, 0x12, 0x20, ...randomBytes(32)]);
  let bits = 0;
  let value = 0;
  let text = 'b';
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32[(value >> bits) & 31];
    }
    value &= (1 << bits) - 1;
  }
  return bits > 0 ? text + BASE32[(value << (5 - bits)) & 31] : text;
}

/** Wants files that nobody has. */
export const wanter: Actor = {
  who: 'unknown CIDs',
  async run(stage) {
    while (!stage.signal.aborted) {
      const content = { item_type: 'ipfs', item_hash: unknownCid() };
      const { body } = buildNetworkMessage({ type: 'STORE', content }, stage.signer);
      await submit(stage, 'unknown CIDs', body);
      await stage.pause(4 * PACE_MS);
    }
  },
};

/** Sends what others sent, again and again, and damaged. */
export const replayer: Actor = {
  who: 'replays and forgeries',
  async run(stage) {
    const { body } = signMessage({ type: 'POST', content: { type: 'note', content: {} } }, stage.signer);
    for (let n = 0; !stage.signal.aborted; n++) {
      const at = n % body.length;
      const damaged = body.slice(0, at) + String.fromCharCode(33 + (n % 90)) + body.slice(at + 1);
      await submit(stage, 'replays and forgeries', n % 3 === 0 ? body : damaged);
      await stage.pause(PACE_MS);
    }
  },
};
