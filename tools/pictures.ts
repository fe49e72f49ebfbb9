import { mkdir, writeFile } from 'node:fs/promises';
import { call } from '@skerry/client';
import { fieldsOf } from '@skerry/protocol';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { INDEXER_API } from '@skerry/protocol/api/core/indexer';
import { INSTANCES_API } from '@skerry/protocol/api/core/instances';
import { chromium, type Page } from 'playwright-core';
import { ROOT } from './source.ts';
import { parseCommand } from './usage.ts';

const USAGE = `npm run pictures [-- --core URL]

Makes the pictures of the console in docs/pictures/, of a network that runs: npm start in another shell, best with
--hour 20s for scores, and with a machine in it.

  --core URL   its core node (default http://127.0.0.1:4024)
  --only A,B   make these pictures alone, and leave the others as they are
  -h, --help   this text`;

/** Debian's. */
const EXECUTABLE = '/usr/bin/chromium';
const FOLDER = `${ROOT}docs/pictures/`;
const SIZE = { width: 1_280, height: 860 };
/** WebP: a page of text keeps below 60 kB. */
const QUALITY = 62;
const SETTLE_MS = 1_500;

interface Picture {
  readonly name: string;
  readonly view: string;
  readonly theme?: 'dark';
  readonly act?: (page: Page) => Promise<unknown>;
}

const press = (name: string, then: string) => async (page: Page) => {
  await page.getByRole('button', { name, exact: true }).click();
  await page.locator(then).first().waitFor();
};

/** The result is below the lists of the page. */
async function computeState(page: Page): Promise<void> {
  await press('Compute anew', '.panel .verdict[data-state]')(page);
  await page.getByText('All that it has').evaluate((heading) => heading.scrollIntoView());
}

/** What there is to show in the network. */
async function findPlaces(core: string) {
  const { instances } = await call(core, INSTANCES_API.listInstances, { query: { limit: 1 } });
  const { accounts } = await call(core, CREDITS_API.listAccounts, { query: { limit: 100 } });
  const { networks } = await call(core, INDEXER_API.listNetworks, {});
  const { messages } = await call(core, NETWORK_LISTS_API.listNetworkMessages, {
    query: { contentTypes: 'net-scoring-scores', pagination: 1 },
  });
  const scores = fieldsOf(fieldsOf(fieldsOf(messages[0]?.content).content).scores);
  const [node] = Array.isArray(scores.crn) ? scores.crn : [];
  const richest = accounts.toSorted((one, other) => other.credit_balance - one.credit_balance)[0];
  const nodeId = fieldsOf(node).node_id;
  return {
    nodeId: typeof nodeId === 'string' ? nodeId : undefined,
    machineId: instances[0]?.instance_id,
    account: richest?.address,
    chain: networks[0]?.network,
  };
}

async function listPictures(core: string): Promise<Picture[]> {
  const { nodeId, machineId, account, chain } = await findPlaces(core);
  const random = 'random?seed=draw+2031-05-04&min=1&max=49&count=6';
  return [
    { name: 'overview', view: '' },
    { name: 'nodes', view: 'nodes', theme: 'dark' },
    ...(nodeId
      ? [{ name: 'node', view: `nodes/${nodeId}`, act: press('Recompute', '.verdict[data-state]') }]
      : []),
    { name: 'machines', view: 'machines' },
    ...(machineId
      ? ([
          { name: 'machine', view: `machines/${machineId}`, theme: 'dark' },
          { name: 'message', view: `messages/${machineId}` },
        ] as const)
      : []),
    { name: 'messages', view: 'messages' },
    { name: 'names', view: 'names' },
    { name: 'create', view: 'create' },
    { name: 'programs', view: 'programs', theme: 'dark' },
    { name: 'files', view: 'files' },
    { name: 'webhooks', view: 'webhooks' },
    ...(account
      ? [{ name: 'account', view: `credits/${account}`, act: press('Add up', '.verdict[data-state]') }]
      : []),
    { name: 'credits', view: 'credits', theme: 'dark' },
    ...(chain ? [{ name: 'indexer', view: `indexer/${chain}` }] : []),
    { name: 'random', view: random, theme: 'dark' },
    { name: 'keys', view: 'keys' },
    { name: 'trust', view: 'trust', act: computeState },
  ];
}

/** WebP, which playwright does not make by itself. */
async function capture(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  await session.detach();
  return Buffer.from(data, 'base64');
}

const { values } = parseCommand(USAGE, {
  options: { core: { type: 'string', default: 'http://127.0.0.1:4024' }, only: { type: 'string' } },
});
const core = String(values.core).replace(/\/+$/, '');
const only = values.only?.split(',');
await mkdir(FOLDER, { recursive: true });
const browser = await chromium.launch({ executablePath: EXECUTABLE, args: ['--no-sandbox'] });
try {
  for (const { name, view, theme = 'light', act } of await listPictures(core)) {
    if (only && !only.includes(name)) continue;
    const page = await browser.newPage({
      ...{ viewport: SIZE, colorScheme: theme, reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'UTC' },
    });
    await page.goto(`${core}/#/${view}`);
    await page.waitForFunction(() => document.querySelector('main h1, main .panel') !== null);
    await act?.(page);
    // Charts and proofs come a moment after the page: there is nothing that all views end with.
    await page.waitForTimeout(SETTLE_MS);
    const bytes = await capture(page);
    await writeFile(`${FOLDER}${name}.webp`, bytes);
    console.log(`${name}.webp: ${Math.round(bytes.length / 1024)} kB`);
    await page.close();
  }
} finally {
  await browser.close();
}
