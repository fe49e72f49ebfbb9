import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { assertFits, type Browsing, LOOK_AGAIN } from './browser.ts';
import { assertAccessible, assertReachable } from './console/access.ts';
import { catchLies, type Told } from './console/liars.ts';
import { clickWebhook } from './console/webhook.ts';

/** What the console shows of a network, seen in a browser. */

/** Whole: each rule for accessibility in each width, and colours in each theme; otherwise rules in the first, colours in the last. */
const LOOKS = [
  { width: 390, theme: 'light', isShort: true },
  { width: 390, theme: 'dark', isShort: false },
  { width: 1_600, theme: 'light', isShort: false },
  // The width that a view is loaded in comes last.
  { width: 1_600, theme: 'dark', isShort: true },
] as const;
/** Tabs until the button is reached: more are a trap. */
const TABS_MAX = 60;
/** So many are told at once, and some of them are messages. */
const LAST_EVENTS = 60;

const isShown = (page: Page) =>
  page.waitForFunction(() => !document.querySelector('.loading'), undefined, LOOK_AGAIN);

/** With the keyboard alone. */
async function recompute(page: Page): Promise<string | null> {
  await page.getByRole('button', { name: 'Recompute', exact: true }).waitFor();
  await page.waitForFunction(
    () => !document.querySelector<HTMLButtonElement>('button.primary')?.disabled,
    undefined,
    LOOK_AGAIN,
  );
  for (let tabs = 0; tabs < TABS_MAX; tabs++) {
    await page.keyboard.press('Tab');
    if ((await page.locator(':focus').textContent()) === 'Recompute') break;
  }
  await page.keyboard.press('Enter');
  const verdict = page.locator('.panel .verdict[data-state]');
  await verdict.waitFor();
  return verdict.getAttribute('data-state');
}

/** What is there when a view has everything, by the address of the view. */
const viewsOf = ({ nodeId, machineId, owner }: Tour): Readonly<Record<string, string>> => ({
  '': '.wide-row [data-mark=proven]',
  'nodes?sort=score&order=down': 'table.rows tbody tr',
  [`nodes/${nodeId}`]: '.bars .good',
  machines: '.rows [data-mark=proven]',
  [`machines/${machineId}`]: '.timeline [data-mark=proven]',
  messages: '.rows td:has-text("net-scoring-scores")',
  [`messages/${machineId}`]: '.verdict[data-state=proven]',
  names: '.rows [data-mark=proven]',
  [`names/${machineId}`]: 'ol.chain',
  programs: 'textarea',
  files: 'input[type=file], .panel',
  create: 'form, .stale',
  keys: 'button',
  trust: '[data-agreement]',
  webhooks: '.stale',
  credits: 'table.rows tbody tr',
  [`credits/${owner}`]: 'figure.chart',
  indexer: 'table.rows tbody tr, .empty',
  'random?seed=tour&min=1&max=49&count=6': '.verdict[data-state=proven]',
  'no/such/page': '.empty',
});

/** Lines of text that a field of one line may be high. */
const FIELD_LINES_MAX = 3;

/** Fails where a field of one line is stretched. */
async function assertFieldsAreFlat(page: Page, where: string): Promise<void> {
  const tall = await page.evaluate((lines) => {
    const most = lines * Number.parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.5;
    const fields = document.querySelectorAll<HTMLElement>('input, select');
    return [...fields].filter((one) => one.offsetHeight > most).map((one) => one.outerHTML.slice(0, 100));
  }, FIELD_LINES_MAX);
  assert.deepEqual(tall, [], where);
}

/** With the keyboard: a mark tells what it leaves open, and links its bytes; who closes it is where they were. */
async function askMark(page: Page, { core, machineId }: Tour): Promise<void> {
  await page.goto(`${core}/#/machines`);
  const mark = page.locator(`tr:has(a[href="#/machines/${machineId}"]) td[data-title=Signed] .opens`);
  await mark.focus();
  await page.keyboard.press('Enter');
  const told = page.getByRole('dialog');
  await told.getByText('not proven').waitFor();
  await assertAccessible(page, 'what a mark means');
  await page.keyboard.press('Escape');
  await told.waitFor({ state: 'detached' });
  assert.equal(await mark.evaluate((one) => one === document.activeElement), true);
  await page.keyboard.press('Enter');
  await told.locator(`a[href="#/messages/${machineId}"]`).click();
  await page.locator('.verdict[data-state=proven]').waitFor();
  assert.equal(await told.count(), 0);
}

/** Fails where a mark does not open, but for those that are explained where they stand. */
async function assertMarksOpen(page: Page, where: string): Promise<void> {
  const closed = await page.evaluate(() =>
    [...document.querySelectorAll('[data-mark]')]
      .filter((one) => one.localName !== 'button' && !one.closest('footer, .meanings'))
      .map((one) => one.textContent),
  );
  assert.deepEqual(closed, [], where);
}

/** With the keyboard, of a line that came live: its mark opens, and the line is still there when it is closed. */
async function askLiveMark(page: Page, { core }: Tour): Promise<void> {
  // What came last stands in the place of what is to come.
  await page.route(
    '**/api/v0/events?kinds=message,instance&*',
    (route, request) =>
      route.continue({
        url: request
          .url()
          .replace(/cursor=(\d+)/, (_, cursor) => `cursor=${Math.max(0, cursor - LAST_EVENTS)}`),
      }),
    { times: 1 },
  );
  await page.goto('about:blank');
  await page.goto(`${core}/#/messages`);
  await page.locator('.live .opens').first().focus();
  const line = page.locator('.live li:has(.opens:focus) a');
  const link = await line.getAttribute('href');
  await page.keyboard.press('Space');
  const told = page.getByRole('dialog');
  await told.locator(`a[href="${link}"]`).waitFor();
  await told.getByText('not proven').waitFor();
  await page.keyboard.press('Escape');
  await told.waitFor({ state: 'detached' });
  assert.equal(await line.getAttribute('href'), link);
}

/** With the keyboard: what one service says leads to its answer. */
async function askWord(page: Page, { core }: Tour): Promise<void> {
  await page.goto(`${core}/#/`);
  const mark = page.locator('.panel:has(h2:text-is("This core node")) .aside .opens');
  await mark.focus();
  await page.keyboard.press('Enter');
  const told = page.getByRole('dialog');
  await told.locator(`a[href="${core}/api/v0/health"]`).waitFor();
  await told.getByText('not proven').waitFor();
  await page.keyboard.press('Escape');
  await told.waitFor({ state: 'detached' });
}

/** Fails where the page asks a node for the same while it is on its way: views share what they ask for. */
async function assertAskedOnce(page: Page, where: string): Promise<void> {
  const twice = await page.evaluate(() => {
    const asked = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
    // The live list begins at the newest event when it begins, and the number of that is shown, too.
    const fetched = asked.filter(
      ({ name, initiatorType }) => initiatorType === 'fetch' && !name.includes('cursor='),
    );
    const isTwice = (one: PerformanceResourceTiming, at: number) =>
      fetched.some(
        (other, index) => index < at && other.name === one.name && one.startTime < other.responseEnd,
      );
    return fetched.filter(isTwice).map(({ name }) => name);
  });
  assert.deepEqual(twice, [], where);
}

/** Every view in each width and theme: a tab changes both where it is, so that nothing is loaded again for a look. */
async function lookAtAll(browser: Browsing, tour: Tour, isWhole: boolean): Promise<void> {
  const looks = LOOKS.filter(({ isShort }) => isWhole || isShort);
  await browser.look(`${tour.core}/`, { width: 1_600, theme: 'light' }, async (page) => {
    const { height } = page.viewportSize()!;
    for (const [path, whole] of Object.entries(viewsOf(tour))) {
      await page.goto(`${tour.core}/#/${path}`);
      await page.locator(whole).first().waitFor();
      await isShown(page);
      await assertAskedOnce(page, path);
      await assertMarksOpen(page, path);
      await assertReachable(page, path);
      for (const { width, theme } of looks) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme: theme });
        const where = `${path} in ${width} px, ${theme}`;
        await assertFits(page, where);
        await assertFieldsAreFlat(page, where);
        await assertAccessible(page, where, theme === 'dark');
      }
    }
  });
}

export type Tour = Told;

/**
 * Every view, narrow and wide, light and dark, and lies about what is in it. A whole one is for `npm run soak -- tour`: each view
 * in each width and theme, and each lie.
 */
export async function lookAndCatchLies(browser: Browsing, tour: Tour, isWhole: boolean): Promise<void> {
  await lookAtAll(browser, tour, isWhole);
  await catchLies(browser, tour, isWhole);
}

/** Every view; messages that were changed on their way; a webhook; a score computed again, with the keyboard. */
export async function tourConsole(browser: Browsing, tour: Tour): Promise<void> {
  const { core, nodeId } = tour;
  await lookAndCatchLies(browser, tour, false);
  await clickWebhook(browser, core);
  await browser.look(`${core}/`, { width: 1_600, theme: 'light' }, async (page) => {
    await page.getByRole('navigation').getByRole('link', { name: 'Nodes' }).click();
    await page.locator(`table.rows a[href="#/nodes/${nodeId}"]`).click();
    assert.equal(await recompute(page), 'equal');
    assert.equal(await page.locator('.compared [data-mark=wrong]').count(), 0);
    assert.ok((await page.locator('.compared [data-mark=proven]').count()) > 10);
    await askMark(page, tour);
    await askWord(page, tour);
    await askLiveMark(page, tour);
  });
}

/** A core node that lies about measurements is told from one that does not. @param core serves the console, and tells the truth */
export async function catchLiar(
  browser: Browsing,
  core: string,
  liar: string,
  nodeId: string,
): Promise<void> {
  const url = `${core}/?core=${encodeURIComponent(liar)}#/nodes/${nodeId}`;
  await browser.look(url, { width: 1_600, theme: 'dark' }, async (page) => {
    assert.equal(await recompute(page), 'different');
    assert.ok((await page.locator('[data-mark=wrong]').count()) > 1);
  });
}
