import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

/** Whether people who do not see well, or use no mouse, can use a page. */

let rules: string | undefined;
/** Read where it is first needed: without a browser nobody needs it. */
const readRules = () => {
  rules ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  return rules;
};

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly targets: readonly string[];
}

/** What axe-core needs to run, as far as it is used here. */
interface Axe {
  run(
    page: Document,
    options: object,
  ): Promise<{
    readonly violations: readonly {
      readonly id: string;
      readonly impact: string;
      readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary: string }[];
    }[];
  }>;
}

/** What a theme changes: the rest of a page is the same in each. */
const OF_THEMES = ['color-contrast'];

/**
 * Fails where axe-core finds something serious or critical.
 * @param isThemeAlone whether only the colours are others than in the look before
 */
export async function assertAccessible(page: Page, where: string, isThemeAlone = false): Promise<void> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(readRules());
  const options = { resultTypes: ['violations'], ...(isThemeAlone ? { runOnly: OF_THEMES } : {}) };
  const found: Finding[] = await page.evaluate(async (asked) => {
    const { axe } = window as unknown as { axe: Axe };
    const { violations } = await axe.run(document, asked);
    return violations.map(({ id, impact, nodes }) => ({
      ...{ id, impact },
      targets: nodes.slice(0, 3).map((node) => `${node.target.join(' ')}: ${node.failureSummary}`),
    }));
  }, options);
  const serious = found.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(serious, [], where);
}

/** More is a trap, or a page that nobody goes through with keys. */
const TABS_MAX = 600;
const SPARE_TABS = 5;
const ROUNDS = 3;
/** So many are pressed before any is waited for: drawing the page after each would be most of the work, and nobody looks. */
const TABS_AT_ONCE = 25;
/** Of a group of radio buttons, Tab reaches the one that is chosen; arrows reach the others. */
const REACHABLE =
  'a[href], button:not(:disabled), input:not([type=radio]), select, textarea, summary, [tabindex="0"]:not(.live)';

interface Watched extends Window {
  seen: Set<Element>;
}

const listMissed = (page: Page) =>
  page.evaluate((selector) => {
    const { seen } = window as unknown as Watched;
    return [...document.querySelectorAll(selector)]
      .filter((one) => !seen.has(one) && one.checkVisibility() && !one.closest('.live, details:not([open])'))
      .map((one) => one.outerHTML.slice(0, 120));
  }, REACHABLE);

const pressTabs = (page: Page, times: number) =>
  Promise.all(Array.from({ length: times }, () => page.keyboard.press('Tab')));

/** Fails where the Tab key does not reach everything that can be clicked, or stays somewhere. */
export async function assertReachable(page: Page, where: string): Promise<void> {
  const total = await page.evaluate((selector) => {
    const watched = window as unknown as Watched;
    watched.seen = new Set();
    document.addEventListener('focusin', ({ target }) => watched.seen.add(target as Element));
    (document.activeElement as HTMLElement | null)?.blur();
    return document.querySelectorAll(selector).length;
  }, REACHABLE);
  let missed: string[] = [];
  // Live rows come while it is gone through: what is behind them is reached later.
  for (let tabs = 0, round = 0; round < ROUNDS; round++) {
    const until = Math.min(tabs + (round === 0 ? total : missed.length) + SPARE_TABS, TABS_MAX);
    for (; tabs < until; tabs += TABS_AT_ONCE) await pressTabs(page, Math.min(TABS_AT_ONCE, until - tabs));
    missed = await listMissed(page);
    if (missed.length <= total / 10) return;
  }
  // A list that is asked for again may have had a new row meanwhile: some may be missed.
  assert.fail(`${where}: the keyboard misses ${missed.slice(0, 5).join('\n')}`);
}
