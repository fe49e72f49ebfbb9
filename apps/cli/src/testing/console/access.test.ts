import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startBrowser } from '../browser.ts';
import { assertReachable } from './access.ts';
import { serveConsole } from './served.ts';

const pageOf = (body: string) =>
  `data:text/html,${encodeURIComponent(`<!doctype html><title>A page</title>${body}`)}`;
const BUTTONS = '<button>press</button>'.repeat(30);
/** What nobody needs to reach: what cannot be used, is folded away or hidden, and all but one of a group. */
const NOT_MEANT = `<input disabled><fieldset disabled><select></select></fieldset><button hidden>no</button>
  <input type="radio" name="one" checked><input type="radio" name="one">
  <details><summary>more</summary><button>folded</button></details>`;
const DEAD = '<button tabindex="-1">dead</button>';
const LOOK = { width: 390, theme: 'light' } as const;

test('one control that the keyboard misses is told, on a page with many; what comes meanwhile is left out', async () => {
  await using browser = await startBrowser();
  const reach = (body: string) => browser.look(pageOf(body), LOOK, (page) => assertReachable(page, 'here'));
  await reach(BUTTONS + NOT_MEANT);
  await assert.rejects(reach(BUTTONS + DEAD), /here: the keyboard misses <button tabindex="-1">dead/);
  await assert.rejects(
    reach(`${BUTTONS}<details><summary tabindex="-1">more</summary></details>`),
    /misses <summary/,
  );
  // Rows that come with each key.
  const more = `<script>addEventListener('keydown', () => document.body.insertAdjacentHTML('afterbegin', '${DEAD}'))</script>`;
  await reach(BUTTONS + more);
});

test('a reader whose browser runs no scripts is told where the facts are, and not that the console is on its way', async () => {
  await using served = await serveConsole();
  await using browser = await startBrowser();
  await browser.look(served.told.url, { ...LOOK, runsScripts: false }, async (page) => {
    // Playwright finds no text in noscript.
    assert.ok(await page.locator('noscript a[href="api/v0/docs"]').isVisible());
    assert.equal(await page.locator('#app').isVisible(), false);
  });
});
