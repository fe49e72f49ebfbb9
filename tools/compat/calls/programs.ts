import assert from 'node:assert/strict';
import { until } from '@skerry/kit/testing/until';
import { storedZip } from '../../../services/compute/src/programs/testing/zip.ts';
import type { Call } from '../call.ts';
import { type Loose, NotOffered } from '../sdk.ts';
import type { World } from '../world.ts';

/** An application as the SDK expects one: `app` in `main.py`, asked over HTTP. */
const ASGI = `
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [[b"content-type", b"text/plain"]]})
    await send({"type": "http.response.body", "body": b"hello from " + scope["path"].encode()})
`;
const FASTAPI = `
from fastapi import FastAPI
app = FastAPI()

@app.get("/")
async def index():
    return {"framework": "fastapi"}
`;
const VARIABLES = `
import os

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": os.environ["COLOUR"].encode()})
`;

/** Notes the types of the messages that it is called with. */
const SUBSCRIBED = `
import json
seen = []

async def app(scope, receive, send):
    if scope["method"] == "POST":
        seen.append(json.loads((await receive())["body"])["content"].get("type"))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(seen).encode()})
`;

const VOLUMES = `
async def app(scope, receive, send):
    for path in ("/data/kept", "/scratch/file"):
        with open(path, "w") as file:
            file.write("x")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"written"})
`;
const OWN_VOLUMES = [
  { persistence: 'host', name: 'data', size_mib: 16, mount: '/data' },
  { ephemeral: true, size_mib: 16, mount: '/scratch' },
];

const zip = (text: string) => storedZip({ 'main.py': text });

/** A program that runs. */
export const zippedApp = zip(ASGI);

const publish = (world: World, more: object) =>
  world.client('ProgramMessageClient').publish({
    account: world.account,
    channel: world.channel,
    entrypoint: 'main:app',
    sync: true,
    ...more,
  });

/** What the program answers at the compute node. */
async function ask(world: World, hash: string, path = '/'): Promise<string> {
  const { compute } = world.network;
  if (compute === undefined) throw new Error('the network has no compute node');
  const response = await fetch(`${compute}/vm/${hash}${path}`);
  const text = await response.text();
  assert.equal(response.status, 200, text.slice(0, 200));
  return text;
}

const runs = (
  name: string,
  config: (world: World) => object,
  path: string,
  expected: string,
  more: Partial<Call> = {},
): Call => ({
  name: `program.publish and run, ${name}`,
  ...more,
  async run(world) {
    const { item_hash } = await publish(world, config(world));
    assert.equal(await ask(world, item_hash, path), expected);
    world.note(`program: ${name}`, item_hash);
  },
});

const estimates = (client: string, what: string, config: (world: World) => object): Call => ({
  name: `${what}.getEstimatedCost`,
  async run(world) {
    const instance = world.client(client);
    const estimate = (config_: object): Promise<Loose> => {
      try {
        return instance.getEstimatedCost(config_);
      } catch (error) {
        if (!(error instanceof NotOffered)) throw error;
        // An older name.
        return instance.getCost(config_);
      }
    };
    const { cost, detail, payment_type } = await estimate({
      account: world.account,
      channel: world.channel,
      ...config(world),
    });
    assert.match(cost, /^\d+\.\d{18}$/);
    assert.ok(Number(cost) > 0 && detail.length > 0 && payment_type === 'credit');
  },
});

export const programCalls: readonly Call[] = [
  runs('a file, as by default', () => ({ file: zip(ASGI) }), '/a/b', 'hello from /a/b'),
  runs('a file of storage', () => ({ file: zip(ASGI), storageEngine: 'storage' }), '/', 'hello from /', {
    theirs: 'older SDKs send bytes as the text of a form, which no archive survives',
  }),
  {
    name: 'program.publish and run, a program reference',
    async run(world) {
      const { item_hash: programRef } = await world.client('StoreMessageClient').send({
        account: world.account,
        channel: world.channel,
        fileObject: zip(ASGI),
        storageEngine: 'ipfs',
        sync: true,
      });
      const { item_hash } = await publish(world, { programRef });
      assert.equal(await ask(world, item_hash), 'hello from /');
    },
  },
  runs('fastapi', () => ({ file: zip(FASTAPI) }), '/', '{"framework":"fastapi"}'),
  runs('variables', () => ({ file: zip(VARIABLES), variables: { COLOUR: 'red' } }), '/', 'red'),
  runs('volumes', () => ({ file: zip(VOLUMES), volumes: OWN_VOLUMES }), '/', 'written'),
  runs('persistent', () => ({ file: zip(ASGI), isPersistent: true }), '/', 'hello from /'),
  {
    name: 'program.publish and call with messages, subscriptions',
    async run(world) {
      // Other calls count what is in the run's own channel.
      const channel = `${world.channel}-subscribed`;
      const { item_hash } = await publish(world, {
        file: zip(SUBSCRIBED),
        subscriptions: [{ sender: world.account.address, channel }],
      });
      // Which messages a node still hears of depends on when it heard of the subscription.
      await until('the program is called with a message', async () => {
        const content = {
          account: world.account,
          channel,
          postType: 'subscribed',
          content: {},
        };
        await world.client('PostMessageClient').send({ ...content, sync: true });
        return (await ask(world, item_hash)).includes('subscribed');
      });
    },
  },
  {
    name: 'program.publish, an unknown reference',
    run: (world) => assert.rejects(() => publish(world, { programRef: 'unknown_program' }), /does not exist/),
  },
  estimates('ProgramMessageClient', 'program', () => ({ file: zip(ASGI), entrypoint: 'main:app' })),
  {
    name: 'price of a program',
    async run(world) {
      const hash = world.noted('program: a file, as by default');
      const response = await fetch(`${world.network.core}/api/v0/price/${hash}`);
      assert.equal(response.status, 200, await response.text());
    },
  },
  estimates('InstanceMessageClient', 'instance', () => ({ payment: { chain: 'ETH', type: 'credit' } })),
];
