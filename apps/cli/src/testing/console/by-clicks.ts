import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CoreClient } from '@skerry/client';
import type { Page } from 'playwright-core';
import { assertFits, startBrowser } from '../browser.ts';
import { until } from '../shell.ts';
import { assertAccessible } from './access.ts';

/** The main job by clicking alone: a key, a machine's disk, the machine, its page under its name, a copy of its disk, its end. */

/** Only what hangs takes as long. */
const SOON_MS = 600_000;
/** What the machine says when it is up, on its console. */
const UP = 'the tiny guest is up';
/** What the machine's page says. */
export const PAGE = 'hello from a machine that was clicked together';

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true });

async function sign(page: Page, begin: string): Promise<void> {
  await button(page, begin).click();
  await button(page, 'Sign').click();
}

/** Puts a disk on the network. Gives its hash. */
async function storeDisk(page: Page, core: string, path: string): Promise<string> {
  await page.goto(`${core}/#/files`);
  await page.getByLabel('files', { exact: true }).setInputFiles(path);
  await sign(page, 'Sign and send');
  const stored = page.locator('[data-state=stored]');
  await stored.waitFor();
  return (await stored.locator('code').first().getAttribute('title'))!;
}

/** Asks for a machine, follows it until it is reachable, and opens its page under its name. Gives its id. */
async function makeMachine(page: Page, core: string, image: string): Promise<string> {
  await page.goto(`${core}/#/create`);
  await page.getByLabel('Image').fill(image);
  await Promise.all([page.waitForEvent('download'), button(page, 'Make an ssh key here').click()]);
  await sign(page, 'Look at it and sign');
  await page.locator('ol.chain[data-state=reachable]').waitFor({ timeout: SOON_MS });
  const name = (await page.locator('.hostname').textContent())!;
  const link = page.getByRole('link', { name: new RegExp(`^http://${name}`) });
  const [opened] = await Promise.all([page.waitForEvent('popup'), link.click()]);
  await opened.getByText(PAGE, { exact: true }).waitFor();
  assert.ok(new URL(opened.url()).hostname.startsWith(`${name}.`), opened.url());
  await opened.close();
  const id = new URL(page.url()).hash.split('/').at(-1)!;
  await page.getByRole('link', { name: 'everything about it' }).click();
  return id;
}

/** Its page under its name, in a window of its own, once it answers. */
async function answers(page: Page): Promise<void> {
  const url = (await page.getByRole('link', { name: /^http:/ }).getAttribute('href'))!;
  const opened = await page.context().newPage();
  await until('the page of the machine answers', SOON_MS, async () => {
    await opened.goto(url).catch(() => undefined);
    return (await opened.innerText('body').catch(() => '')) === PAGE;
  });
  await opened.close();
}

/** What listens on 443 speaks no TLS: the tab is told that there is no certificate that it believes, and how far the way goes. */
async function checkCertificate(page: Page): Promise<void> {
  await button(page, 'Check its certificate').click();
  await page.locator('[data-https=refused], [data-https=silent]').waitFor();
  await page.getByText('The way to the machine is complete.').waitFor();
}

async function restore(page: Page, title: string): Promise<void> {
  await button(page, title).click();
  await page.locator('.stale').getByRole('button', { name: title }).click();
  const what = title.slice('Restore '.length);
  await page.getByText(`Its disk is ${what} again`).waitFor({ timeout: SOON_MS });
}

/** A snapshot and a backup of a machine that runs; both are restored, and the backup is fetched as its link says. */
async function copyDisk(page: Page): Promise<void> {
  await sign(page, 'Show snapshots and backups');
  await page.getByLabel('Name of the snapshot').fill('before');
  await button(page, 'Take a snapshot').click();
  await page.getByRole('list', { name: 'snapshots' }).getByText('before').waitFor();
  await button(page, 'Make a backup').click();
  const made = page.locator('[data-backup=done]');
  await made.waitFor({ timeout: SOON_MS });
  const fetched = await fetch((await made.getByRole('link').getAttribute('href'))!);
  const checksum = createHash('sha256')
    .update(new Uint8Array(await fetched.arrayBuffer()))
    .digest('hex');
  await made.getByText(`sha256:${checksum}`).waitFor();
  await restore(page, 'Restore the snapshot before');
  // A backup has no snapshots: its disk takes the place of the one that they are in.
  await restore(page, (await button(page, /^Restore the backup /).getAttribute('aria-label'))!);
  await page.getByRole('list', { name: 'snapshots' }).getByText('None.').waitFor();
  await page.getByLabel('Name of the snapshot').fill('after');
  await button(page, 'Take a snapshot').click();
  await button(page, 'Delete the snapshot after').click();
  await page.locator('.stale').getByRole('button', { name: 'Delete the snapshot after' }).click();
  await page.getByRole('list', { name: 'snapshots' }).getByText('None.').waitFor();
}

/** What a machine says on its console is shown, found, and saved as far as its node keeps it. */
async function readConsole(page: Page): Promise<void> {
  await button(page, 'Show what it says').click();
  await page.locator('pre.console', { hasText: UP }).waitFor();
  const find = async (text: string) => {
    await page.getByLabel('find in all that is kept').fill(text);
    await button(page, 'Find').click();
  };
  await find('no guest says this');
  await page.locator('[data-found="0"]').waitFor();
  await find(UP.toUpperCase());
  await page.locator('[data-found]:not([data-found="0"])').waitFor();
  await page.locator('pre.console', { hasText: UP }).waitFor();
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    button(page, 'Save all that is kept').click(),
  ]);
  assert.match(await readFile(await saved.path(), 'utf8'), new RegExp(`^\\d{4}-\\S+Z ${UP}$`, 'm'));
}

/** Gateway and compute node hear of a machine, and of its end, a moment after its page asks them; a browser notes each 404, and what speaks no TLS. */
const NOT_YET = /status of 404|net::ERR_/;

/**
 * Does it all, and leaves nothing.
 * @param disk the path of one whose machine serves `PAGE` on port 80, and listens on 443
 */
export async function liveByClicks(core: string, disk: string): Promise<void> {
  await using browser = await startBrowser();
  const looks = { width: 390, theme: 'dark', expects: NOT_YET } as const;
  await browser.look(`${core}/#/keys`, looks, async (page) => {
    await button(page, 'Make a key').click();
    await button(page, 'Put it away').waitFor();
    const id = await makeMachine(page, core, await storeDisk(page, core, disk));
    const client = new CoreClient({ url: core });
    await checkCertificate(page);
    await copyDisk(page);
    await answers(page);
    await readConsole(page);
    await sign(page, 'Count traffic');
    // A browser also asks for an icon.
    const requests = page.locator('[data-state=counted] div', { hasText: 'HTTP requests' }).locator('dd');
    assert.ok(Number(await requests.innerText()) >= 1);
    // What only an owner of a running machine sees.
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await assertAccessible(page, `the machine's page of its owner, ${colorScheme}`);
    }
    await assertFits(page, "the machine's page of its owner");
    await sign(page, 'Restart');
    await until('it runs again', SOON_MS, async () => {
      const { restart_id: restart, phase } = await client.getInstance(id);
      return restart !== null && phase === 'running';
    });
    await button(page, 'Delete').click();
    await sign(page, 'Delete it and its disk');
    const isGone = async () => (await client.listInstances()).instances.length === 0;
    await until('it is gone', SOON_MS, isGone);
  });
}
