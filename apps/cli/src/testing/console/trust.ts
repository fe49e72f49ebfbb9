import assert from 'node:assert/strict';
import { createSigner, generatePrivateKey } from '@skerry/client';
import type { Page } from 'playwright-core';
import { type Browsing, LOOK_AGAIN } from '../browser.ts';

interface Nodes {
  /** Serves the console; the other one is its peer. */
  readonly core: string;
  readonly peer: string;
  readonly machineId: string;
}

/** Another digit in the place of the one at the end. */
const otherAfter = (_: string, head: string, digit: string) => head + (digit === '1' ? '2' : '1');

const shown = (page: Page, what: string) => page.locator(what).first().waitFor();

async function useOwnScheduler(page: Page, core: string): Promise<void> {
  const form = page.getByRole('form', { name: 'Schedulers' });
  await form.getByRole('textbox').fill(createSigner(generatePrivateKey()).address);
  await form.getByRole('button').click();
  await page.getByText('yours: 1').waitFor();
  await page.goto(`${core}/#/machines`);
  await shown(page, '.rows [data-mark=wrong]');
  await page.reload();
  await shown(page, '.rows [data-mark=wrong]');
  await page.goto(`${core}/#/trust`);
  await page.getByRole('button', { name: "Use the core node's" }).click();
  await page.goto(`${core}/#/machines`);
  await page.waitForFunction(
    () =>
      document.querySelector('.rows [data-mark=proven]') &&
      !document.querySelector('.rows [data-mark=wrong]'),
    undefined,
    LOOK_AGAIN,
  );
}

const keyAt = (url: string, mark: string) => `[data-core-key="${url}"] [data-mark=${mark}]`;

/** The peer's key answers at its URL; not one that it is said to have, and not where another one answers. */
async function proveKeys(page: Page, { core, peer }: Nodes): Promise<void> {
  let times = 0;
  const anew = () => page.goto(`${core}/?${times++}#/trust`);
  for (const url of [core, peer]) await shown(page, keyAt(url, 'proven'));
  const lies: readonly (readonly [string, (body: string) => string])[] = [
    [`${peer}/status/proof?*`, (body) => body.replace(/("signature":"0x.)(.)/, otherAfter)],
    [`${core}/api/v0/sync/status`, (body) => body.replace(/("peers":.*?"address":"0x)(.)/, otherAfter)],
  ];
  for (const [answers, change] of lies) {
    await page.route(answers, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: change(await response.text()) });
    });
    await anew();
    await shown(page, keyAt(peer, 'wrong'));
    await shown(page, keyAt(core, 'proven'));
    await page.unrouteAll({ behavior: 'wait' });
  }
  await anew();
  await shown(page, keyAt(peer, 'proven'));
}

/** Of a core node that names no services, the overview is whole, and waits for none of them. */
async function lookWithoutServices(page: Page, { core }: Nodes): Promise<void> {
  await page.goto(`${core}/#/`);
  await shown(page, '.wide-row .panel');
  await page.waitForFunction(() => !document.querySelector('.loading'), undefined, LOOK_AGAIN);
}

/** Two nodes agree, until one of them is made to say something else; the reader's own lists count, and stay. */
export async function compareNodes(browser: Browsing, nodes: Nodes): Promise<void> {
  const { core, peer, machineId } = nodes;
  await browser.look(`${core}/#/trust`, { width: 1_600, theme: 'dark' }, async (page) => {
    await lookWithoutServices(page, nodes);
    await page.goto(`${core}/#/trust`);
    await shown(page, '[data-agreement=agree]');
    assert.equal(await page.getByText(peer).first().isVisible(), true);
    await proveKeys(page, nodes);
    await page.goto(`${core}/#/messages/${machineId}`);
    await shown(page, '[data-agreement=agree]');
    await page.route(`${peer}/api/v0/messages/${machineId}/status`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace('"processed"', '"rejected"') });
    });
    await page.reload();
    await shown(page, '[data-agreement=differ]');
    await page.route(`${peer}/api/v0/state/digest/messages`, async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replace(/"count":(\d)/, '"count":1$1');
      await route.fulfill({ response, body });
    });
    await page.goto('about:blank');
    await page.goto(`${core}/#/trust`);
    await shown(page, '[data-agreement=differ]');
    await useOwnScheduler(page, core);
  });
}
