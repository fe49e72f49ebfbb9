import { randomBytes } from 'node:crypto';
import { signMessage } from '@skerry/client';
import { type Asked, codeOf, postJson, storeQuestion } from './ask.ts';
import { type Actor, api, type Stage } from './places.ts';

/** Honest users. Each keeps below its share of the rates, and every answer that is not the one it expects is a fault. */

const WRITE_EVERY_MS = 1_000;
const UPLOAD_EVERY_MS = 10_000;
const RUN_EVERY_MS = 8_000;
const LOOK_EVERY_MS = 5_000;
const FILE_BYTES = 256 * 1024;
/** How long a message may take to be at another core node. */
const ARRIVAL_MS = 30_000;
const ASK_AGAIN_MS = 1_000;

/** One request with its judgement in the tally; undefined where it failed. */
async function attempt(
  { tally, signal }: Stage,
  who: string,
  what: string,
  ask: () => Promise<Asked>,
  judge: (asked: Asked) => string | undefined = ({ status }) =>
    status === 200 ? undefined : `answered ${status}`,
): Promise<Asked | undefined> {
  const startMs = performance.now();
  try {
    const asked = await ask();
    const failure = judge(asked);
    const why = failure && `${failure} (${codeOf(asked)}): ${asked.body.toString().slice(0, 200)}`;
    tally.honest(who, what, performance.now() - startMs, why);
    return failure === undefined ? asked : undefined;
  } catch (error) {
    // What the end of the run cut off is nobody's fault.
    if (!signal.aborted) tally.honest(who, what, performance.now() - startMs, String(error));
    return undefined;
  }
}

/** Whether a message came to another core node in time. */
async function expectAt(stage: Stage, core: string, hash: string): Promise<void> {
  const { caller, tally, signal, pause } = stage;
  const deadlineMs = Date.now() + ARRIVAL_MS;
  while (!signal.aborted) {
    const { status } = await caller.ask(`${api(core)}/messages/${hash}/status`);
    if (status === 200) return;
    if (Date.now() > deadlineMs) {
      tally.fault('writer', 'arrival', `${hash} is not at ${core} after ${ARRIVAL_MS} ms`);
      return;
    }
    await pause(ASK_AGAIN_MS);
  }
}

/** Posts, changes and forgets what is its own, at one core node, and looks for it at another. */
export const writer = (at: number): Actor => ({
  who: 'writer',
  async run(stage) {
    const { places, caller, signer, signal, pause } = stage;
    const core = places.cores[at % places.cores.length]!;
    const other = places.cores[(at + 1) % places.cores.length]!;
    const send = async (what: string, type: string, content: unknown) => {
      const { body, itemHash } = signMessage({ type, content, channel: 'honest' }, signer);
      const sent = await attempt(stage, 'writer', what, () =>
        caller.ask(`${api(core)}/messages`, postJson(body)),
      );
      return sent && itemHash;
    };
    for (let n = 0; !signal.aborted; n++) {
      const post = await send('post', 'POST', { type: 'note', content: { n } });
      await pause(WRITE_EVERY_MS);
      if (n % 5 === 0)
        await send('aggregate', 'AGGREGATE', { key: 'diary', content: { [`day${n % 7}`]: n } });
      if (post !== undefined && n % 5 === 1) await expectAt(stage, other, post).catch(() => {});
      if (post !== undefined && n % 5 === 2) await send('forget', 'FORGET', { hashes: [post] });
      if (post !== undefined && n % 5 === 3) {
        await attempt(stage, 'reader', 'message', () => caller.ask(`${api(core)}/messages/${post}`));
        await attempt(stage, 'reader', 'list', () =>
          caller.ask(`${api(core)}/messages?addresses=${signer.address}&limit=5`),
        );
      }
      await pause(WRITE_EVERY_MS);
    }
  },
});

/** Stores files and reads them back. */
export const keeper = (at: number): Actor => ({
  who: 'keeper',
  async run(stage) {
    const { places, caller, signer, signal, pause } = stage;
    const core = places.cores[at % places.cores.length]!;
    while (!signal.aborted) {
      const bytes = randomBytes(FILE_BYTES);
      const { hash, question } = await storeQuestion(signer, bytes);
      const stored = await attempt(stage, 'keeper', 'store', () =>
        caller.ask(`${api(core)}/storage/store`, question),
      );
      if (stored !== undefined)
        await attempt(
          stage,
          'keeper',
          'read back',
          () => caller.ask(`${api(core)}/storage/raw/${hash}`),
          ({ status, body }) =>
            status === 200 && bytes.equals(body) ? undefined : `answered ${status}, ${body.length} bytes`,
        );
      await pause(UPLOAD_EVERY_MS);
    }
  },
});

/** Follows one core node's events, which must have no gap. */
export const follower = (at: number): Actor => ({
  who: 'follower',
  async run(stage) {
    const { places, caller, signal, pause } = stage;
    const core = places.cores[at % places.cores.length]!;
    let cursor = 0;
    while (!signal.aborted) {
      const asked = await attempt(stage, 'follower', 'page of events', () =>
        caller.ask(`${api(core)}/events?cursor=${cursor}&limit=100`),
      );
      const { events } = (asked === undefined ? { events: [] } : JSON.parse(asked.body.toString())) as {
        events: { cursor: string }[];
      };
      for (const event of events) {
        const next = Number(event.cursor);
        if (next !== cursor + 1) stage.tally.fault('follower', 'gap', `event ${next} came after ${cursor}`);
        cursor = next;
      }
      // A share of the rate, and a page a second is more than honest users write.
      await pause(ASK_AGAIN_MS);
    }
  },
});

/** Runs a program of its own by a core node. */
export const runner = (at: number): Actor => ({
  who: 'runner',
  async run(stage) {
    const { places, caller, signer, signal, pause } = stage;
    const core = places.cores[at % places.cores.length]!;
    const program = signMessage(
      {
        type: 'PROGRAM',
        content: {
          name: 'greeter',
          runtime: 'python3',
          code: 'def main(variables, request): return {"hello": variables.get("name", "world")}\n',
          memory: 128,
          timeout: 60,
        },
      },
      signer,
    );
    await attempt(stage, 'runner', 'create', () =>
      caller.ask(`${api(core)}/programs`, postJson(program.body)),
    );
    while (!signal.aborted) {
      const name = randomBytes(4).toString('hex');
      await attempt(
        stage,
        'runner',
        'run',
        () =>
          caller.ask(
            `${api(core)}/run/${program.itemHash}`,
            postJson(JSON.stringify({ variables: { name } })),
          ),
        ({ status, body }) =>
          status === 200 && body.toString().includes(name) ? undefined : `answered ${status}`,
      );
      await pause(RUN_EVERY_MS);
    }
  },
});

/** The owner of a machine: it is where it was placed, under its address, and its name leads there. */
export const owner = (at: number, instanceId: string, hostname: string, ipv6: string): Actor => ({
  who: 'owner',
  async run(stage) {
    const { places, caller, signal, pause } = stage;
    const core = places.cores[at % places.cores.length]!;
    while (!signal.aborted) {
      await attempt(
        stage,
        'owner',
        'machine',
        () => caller.ask(`${api(core)}/instances/${instanceId}`),
        ({ status, body }) => {
          if (status !== 200) return `answered ${status}`;
          const view = JSON.parse(body.toString()) as { ipv6: string; desired: string };
          return view.ipv6 === ipv6 && view.desired === 'running'
            ? undefined
            : 'the machine was moved or taken';
        },
      );
      await attempt(
        stage,
        'owner',
        'name',
        () => caller.ask(`${places.gatewayApi}/api/lookup/${hostname}`),
        ({ status, body }) => {
          if (status !== 200) return `answered ${status}`;
          const route = JSON.parse(body.toString()) as {
            instance_hash: string;
            ipv6: string;
            active: boolean;
          };
          return route.instance_hash === instanceId && route.ipv6 === ipv6 && route.active
            ? undefined
            : 'the name leads elsewhere';
        },
      );
      await pause(LOOK_EVERY_MS);
    }
  },
});
