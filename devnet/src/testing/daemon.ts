import { once } from 'node:events';
import { createServer } from 'node:http';

/**
 * Stands in for a daemon in tests: speaks the same as kit's runService to whoever started it (ready by the ipc channel,
 * stops on SIGTERM and when the channel ends) and serves its settings. What it does beside that, TEST_BEHAVIOUR says.
 */
const name = process.argv[2]!;
const behaviour = JSON.parse(process.env.TEST_BEHAVIOUR ?? '{}') as Record<string, string>;
const say = (msg: string) => console.log(JSON.stringify({ level: 30, time: Date.now(), name, msg }));

if (behaviour[name] === 'wrong-setting') {
  console.error('error: SKERRY_A: too much\n  SKERRY_B: too little (INVALID_CONFIG)');
  process.exit(2);
}
if (behaviour[name] === 'crash') {
  console.error('no good');
  process.exit(1);
}

/** Without the kit, which takes longer to load than all of this. */
async function awaitSettings(): Promise<Record<string, string>> {
  const onGone = () => process.exit(0);
  process.once('disconnect', onGone);
  const [{ settings }] = (await once(process, 'message')) as [{ settings: Record<string, string> }];
  process.off('disconnect', onGone);
  return settings;
}

const told = process.argv.includes('--await-settings') ? await awaitSettings() : {};
const settings = Object.fromEntries(
  Object.entries({ ...process.env, ...told }).filter(([key]) =>
    key.startsWith(`SKERRY_${name.toUpperCase()}_`),
  ),
);
const portVariables = Object.keys(settings).filter((key) => key.endsWith('_PORT'));

const servers = await Promise.all(
  portVariables.map(async (variable) => {
    const server = createServer((_request, response) => response.end(JSON.stringify(settings)));
    await new Promise<void>((resolve) => server.listen(Number(settings[variable]), 'localhost', resolve));
    return server;
  }),
);
const urls = servers.map((server) => `http://localhost:${(server.address() as { port: number }).port}`);

const stop = (why: string) => {
  say(`stops: ${why}`);
  if (behaviour[name] !== 'stubborn') process.exit(0);
};
process.on('SIGTERM', () => stop('SIGTERM'));
process.on('SIGINT', () => stop('SIGINT'));
process.on('disconnect', () => stop('disconnect'));
say('serves');
process.send?.({ ready: true, urls });
