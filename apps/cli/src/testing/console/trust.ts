import assert from 'node:assert/strict';
import { createSigner, generatePrivateKey } from '@skerry/client';
import type { Page } from 'playwright-core';
import type { Browsing } from '../browser.ts';

interface Nodes {
  /** Serves the console; the other one is its peer. */
  readonly core: string;
  readonly peer: string;
  readonly machineId: string;
}

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
  );
}

/** Two nodes agree, until one of them is made to say something else; the reader's own lists count, and stay. */
export async function compareNodes(browser: Browsing, { core, peer, machineId }: Nodes): Promise<void> {
  await browser.look(`${core}/#/trust`, { width: 1_600, theme: 'dark' }, async (page) => {
    await shown(page, '[data-agreement=agree]');
    assert.equal(await page.getByText(peer).first().isVisible(), true);
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
