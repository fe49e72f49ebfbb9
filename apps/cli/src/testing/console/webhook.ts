import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import type { Page } from 'playwright-core';
import type { Browsing } from '../browser.ts';
import { until } from '../shell.ts';

const TIMEOUT_MS = 120_000;

/** Takes deliveries, and keeps their ids. */
async function startReceiver() {
  const ids: string[] = [];
  const server = createServer((request, response) => {
    ids.push(String(request.headers['webhook-id']));
    request.resume();
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ids,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

/** A key made in the browser, a webhook, its deliveries, and one of them sent again. */
export async function clickWebhook(browser: Browsing, core: string): Promise<void> {
  await using receiver = await startReceiver();
  await browser.look(`${core}/#/keys`, { width: 390, theme: 'light' }, async (page) => {
    await press(page, 'Make a key');
    await page.getByRole('button', { name: 'Put it away' }).waitFor();
    await page.goto(`${core}/#/webhooks`);
    await page.getByLabel('Address that is called').fill(receiver.url);
    await press(page, 'Register');
    const asked = page.getByRole('dialog');
    assert.match((await asked.textContent())!, /Register a webhook/);
    await press(page, 'Sign');
    await page.locator('[data-state=registered]').waitFor();
    // One signature for one click: the list waits until it is asked for. A question does not outlive its page.
    await press(page, 'Ask for them');
    await asked.waitFor();
    await page.evaluate('location.hash = "#/random"');
    await asked.waitFor({ state: 'detached' });
    await page.evaluate('location.hash = "#/webhooks"');
    await press(page, 'Ask for them');
    await press(page, 'Sign');
    await page.locator('.webhook').waitFor();
    const somebody = new CoreClient({ url: core, signer: createSigner(generatePrivateKey()) });
    await somebody.postMessage({ type: 'POST', content: { type: 'note', content: 'to be told' } });
    await until('something was delivered', TIMEOUT_MS, async () => receiver.ids.length > 0);
    const [first] = receiver.ids;
    await press(page, 'Deliveries');
    await press(page, 'Sign');
    const row = page.locator('.deliveries li').filter({ hasText: first! });
    await row.getByRole('button', { name: 'Send again' }).click();
    await press(page, 'Sign');
    await row.getByRole('button', { name: 'Sent again' }).waitFor();
    await until(
      'it came again',
      TIMEOUT_MS,
      async () => receiver.ids.filter((id) => id === first).length === 2,
    );
    await page.locator('.webhook').getByRole('button', { name: 'Delete', exact: true }).click();
    await press(page, 'Delete it and its secrets');
    await press(page, 'Sign');
    await page.getByText('You have none on this core node.').waitFor();
  });
}
