import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import type { Browsing } from '../browser.ts';

/** A core node that changes one byte of what it says: the page has to mark it, whatever it is. */
interface Lie {
  /** Where in the console it shows. */
  readonly view: string;
  /** Which answers it changes. */
  readonly answers: string;
  readonly change: (body: string) => string;
  /** Where the truth is asked for, if elsewhere. */
  readonly ask?: (url: string) => string;
  /** What the changed answer is made into. */
  readonly wrap?: (body: string) => { readonly body: string; readonly contentType: string };
  /** What the reader does to see it. */
  readonly act?: (page: Page) => Promise<void>;
  /** Where the page says so. */
  readonly mark: string;
  /** Told in whole runs alone: a short one tells another that the page finds in the same way. */
  readonly isLong?: true;
}

export interface Told {
  readonly core: string;
  readonly nodeId: string;
  /** A machine with one core, and the address that it has. */
  readonly machineId: string;
  readonly ipv6: string;
  /** Somebody with credit. */
  readonly owner: string;
}

/** Another digit in its place. */
const otherDigit = (digit: string) => (digit === '1' ? '2' : '1');
/** A page of events as the stream tells them. */
const asStream = (body: string) => ({
  contentType: 'text/event-stream',
  body: (JSON.parse(body) as { events: { cursor: string; kind: string }[] }).events
    .map((event) => `id: ${event.cursor}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
});
const press = (name: string) => (page: Page) => page.getByRole('button', { name, exact: true }).click();

const liesAbout = ({ machineId, nodeId, ipv6, owner }: Told): Readonly<Record<string, Lie>> => ({
  'a message': {
    view: `messages/${machineId}`,
    answers: `**/api/v0/messages/${machineId}`,
    change: (body) => body.replaceAll('"cpu":1,', '"cpu":2,'),
    mark: '.verdict[data-state=refuted]',
  },
  'the sender of a message': {
    view: `messages/${machineId}`,
    answers: `**/api/v0/messages/${machineId}`,
    change: (body) => body.replaceAll(owner, `${owner.slice(0, -1)}${otherDigit(owner.at(-1)!)}`),
    mark: '.verdict[data-state=refuted]',
    isLong: true,
  },
  "a machine's address: the part of its hash": {
    view: `machines/${machineId}`,
    answers: `**/api/v0/instances/${machineId}?bodies=shared`,
    change: (body) => body.replaceAll(ipv6, `${ipv6.slice(0, -1)}${otherDigit(ipv6.at(-1)!)}`),
    mark: '.facts [data-mark=wrong]',
  },
  "a machine's address: the part of its node": {
    view: `machines/${machineId}`,
    answers: `**/api/v0/instances/${machineId}?bodies=shared`,
    change: (body) =>
      body.replaceAll(
        ipv6,
        ipv6.replace(/^(.)(.)/, (_, head, digit) => head + otherDigit(digit)),
      ),
    mark: '.facts [data-mark=wrong]',
    isLong: true,
  },
  'how a machine is': {
    view: `machines/${machineId}`,
    answers: `**/api/v0/instances/${machineId}?bodies=shared`,
    change: (body) => body.replace('"cpu":1,', '"cpu":2,'),
    mark: '[data-whole=wrong]',
  },
  'what an event says of a machine': {
    view: `machines/${machineId}`,
    answers: '**/api/v0/events?kinds=message,instance&*',
    ask: (url) => url.replace(/cursor=[^&]*/, 'cursor=0').replace('message,instance', 'instance'),
    change: (body) => body.replaceAll('\\"decided_at_ms\\":1', '\\"decided_at_ms\\":2'),
    wrap: asStream,
    mark: '.timeline [data-mark=wrong]',
    isLong: true,
  },
  'where an event says that a machine is': {
    view: `machines/${machineId}`,
    answers: '**/api/v0/events?kinds=message,instance&*',
    ask: (url) => url.replace(/cursor=[^&]*/, 'cursor=0').replace('message,instance', 'instance'),
    change: (body) => body.replaceAll(/"node_id":"(.)/g, (_, digit) => `"node_id":"${otherDigit(digit)}`),
    wrap: asStream,
    mark: '.timeline [data-mark=wrong]',
    isLong: true,
  },
  "a line of a machine's history": {
    view: `machines/${machineId}`,
    answers: '**/api/v0/messages.json?refs=*',
    change: (body) => body.replaceAll('"decided_at_ms":1', '"decided_at_ms":2'),
    mark: '.timeline [data-mark=wrong]',
  },
  'a line of the list of messages': {
    view: 'messages',
    answers: '**/api/v0/messages.json?pagination=50*',
    change: (body) =>
      body.replace(
        /"sender":"(0x[0-9a-f]{39})([0-9a-f])"/,
        (_, head, digit) => `"sender":"${head}${otherDigit(digit)}"`,
      ),
    mark: '.rows [data-mark=wrong]',
    isLong: true,
  },
  'a message in the list of messages': {
    view: 'messages',
    answers: '**/api/v0/messages.json?pagination=50*',
    change: (body) =>
      body.replace(/(\\"signature\\":\\"0x)([0-9a-f])/, (_, head, digit) => head + otherDigit(digit)),
    mark: '.rows [data-mark=wrong]',
  },
  'a live message': {
    view: 'messages',
    answers: '**/api/v0/events?kinds=message,instance&*',
    // A stream has no end to wait for: a page of the same events stands in its place.
    ask: (url) => url.replace(/cursor=[^&]*/, 'cursor=0'),
    change: (body) =>
      body.replaceAll(
        /"sender":"(0x[0-9a-f]{39})([0-9a-f])"/g,
        (_, head, digit) => `"sender":"${head}${otherDigit(digit)}"`,
      ),
    wrap: asStream,
    mark: '.live [data-mark=wrong]',
  },
  'a machine in the list of machines': {
    view: 'machines',
    answers: '**/api/v0/instances?limit=100&bodies=shared',
    change: (body) => body.replaceAll('"cpu":1,', '"cpu":2,'),
    mark: '.rows [data-mark=wrong]',
  },
  'a message that a machine follows from': {
    view: 'machines',
    answers: '**/api/v0/instances?limit=100&bodies=shared',
    change: (body) => body.replaceAll('\\"cpu\\":1,', '\\"cpu\\":2,'),
    mark: '.rows [data-mark=wrong]',
    isLong: true,
  },
  'the digest of all messages': {
    view: 'trust',
    answers: '**/api/v0/state/digest/messages',
    change: (body) => body.replace(/"digest":"([0-9a-f])/, (_, digit) => `"digest":"${otherDigit(digit)}`),
    act: press('Compute anew'),
    mark: '.verdict[data-state=different]',
  },
  'the digest of all machines': {
    view: 'trust',
    answers: '**/api/v0/state/digest/instances',
    change: (body) => body.replace(/"digest":"([0-9a-f])/, (_, digit) => `"digest":"${otherDigit(digit)}`),
    act: press('Compute anew'),
    mark: '.verdict[data-state=different]',
    isLong: true,
  },
  'a digest of what follows from messages': {
    view: 'trust',
    answers: '**/api/v0/state/digest/derived',
    change: (body) => body.replace(/"digest":"([0-9a-f])/, (_, digit) => `"digest":"${otherDigit(digit)}`),
    act: press('Compute anew'),
    mark: '.verdict[data-state=different]',
    isLong: true,
  },
  'the status of a message, where all are listed': {
    view: 'trust',
    answers: '**/api/v0/messages/hashes*',
    change: (body) => body.replace('"status":"processed"', '"status":"forgotten"'),
    act: press('Compute anew'),
    mark: '.verdict[data-state=different]',
    isLong: true,
  },
  'a name': {
    view: 'names',
    answers: '**/api/routes?*',
    change: (body) =>
      body.replace(/"subdomain":"(.)/, (_, letter) => `"subdomain":"${letter === 'a' ? 'b' : 'a'}`),
    mark: '.rows [data-mark=wrong]',
  },
  'a measurement of where nodes are': {
    view: '',
    answers: '**/api/v0/messages.json?*net-scoring-metrics*',
    change: (body) => body.replace(/(\\"asn\\":)(\d)/, (_, head, digit) => head + otherDigit(digit)),
    mark: '.wide-row [data-mark=wrong]',
  },
  'a score': {
    view: `nodes/${nodeId}`,
    answers: '**/api/v0/messages.json?*net-scoring-scores*',
    change: (body) =>
      body.replaceAll(/"total_score":0\.(\d)/g, (_, digit) => `"total_score":0.${otherDigit(digit)}`),
    mark: '.facts [data-mark=wrong]',
  },
  'where a node is': {
    view: `nodes/${nodeId}`,
    answers: '**/api/v0/nodes',
    change: (body) => body.replace(/"url":"http:\/\/127/, '"url":"http://128'),
    mark: '[data-place=wrong]',
    isLong: true,
  },
  'who answers where a node is': {
    view: `nodes/${nodeId}`,
    answers: '**/status/proof?challenge=*',
    change: (body) => body.replace(/("signature":"0x)(.)/, (_, head, digit) => head + otherDigit(digit)),
    act: press('Ask for its key there'),
    mark: '[data-place] [data-mark=wrong]',
  },
  'a balance': {
    view: `credits/${owner}`,
    answers: `**/api/v0/addresses/${owner}/balance`,
    change: (body) =>
      body.replace(
        /"credit_balance_nano":"(\d)/,
        (_, digit) => `"credit_balance_nano":"${otherDigit(digit)}`,
      ),
    act: press('Add up'),
    mark: '.verdict[data-state=different]',
  },
  'a random value': {
    view: 'random?seed=liar&min=1&max=9&count=3',
    answers: '**/api/v0/vrf/generate',
    change: (body) => body.replace(/"values":\[(\d)/, (_, digit) => `"values":[${otherDigit(digit)}`),
    mark: '.verdict[data-state=refuted]',
  },
});

/** Tells lies, all of them or those of short runs, and fails where the page does not mark one, or marks it where the truth is told. */
export async function catchLies(browser: Browsing, told: Told, isWhole: boolean): Promise<void> {
  const lies = Object.entries(liesAbout(told)).filter(([, { isLong }]) => isWhole || !isLong);
  await browser.look('about:blank', { width: 1_600, theme: 'dark' }, async (page) => {
    for (const [index, [what, { view, answers, change, ask, wrap, act, mark }]] of lies.entries()) {
      let changed = 0;
      await page.route(answers, async (route) => {
        const url = route.request().url();
        const headers = ask ? { accept: 'application/json' } : route.request().headers();
        const response = await route.fetch({ url: ask?.(url) ?? url, headers });
        const truth = await response.text();
        const body = change(truth);
        if (body !== truth) changed++;
        await route.fulfill({ response, ...(wrap?.(body) ?? { body }) });
      });
      // Anew, since it is another address: nothing is left of what was told before.
      await page.goto(`${told.core}/?${index}#/${view}`);
      await act?.(page);
      await page
        .locator(mark)
        .first()
        .waitFor()
        .catch(() => assert.fail(`${what} was changed ${changed} times, and the page does not show ${mark}`));
      // Those that are being answered come to their end first.
      await page.unrouteAll({ behavior: 'wait' });
      assert.ok(changed > 0, `${what}: nothing was changed`);
    }
  });
}
