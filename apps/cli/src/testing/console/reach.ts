import assert from 'node:assert/strict';
import { startBrowser } from '../browser.ts';

/** Only what hangs takes as long. */
const SOON_MS = 300_000;

/** Follows a machine in the console until it is reachable, and opens its page under its name. Resolves with what stands there. */
export async function openByName(core: string, machineId: string): Promise<string> {
  await using browser = await startBrowser();
  let text = '';
  // Its certificate is its own.
  const look = { width: 390, theme: 'dark', takesAnyCertificate: true } as const;
  await browser.look(`${core}/#/create/${machineId}`, look, async (page) => {
    await page.locator('ol.chain[data-state=reachable]').waitFor({ timeout: SOON_MS });
    const link = page.getByRole('link', { name: /^https:/ });
    assert.ok((await link.getAttribute('href'))!.includes((await page.locator('.hostname').textContent())!));
    await page.getByRole('button', { name: 'Check its certificate' }).click();
    await page.locator('[data-https=believed]').waitFor();
    const [opened] = await Promise.all([page.waitForEvent('popup'), link.click()]);
    await opened.waitForLoadState();
    text = await opened.innerText('body');
  });
  return text;
}
