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
/** So many are pressed before any is waited for: drawing the page after each would be most of the work, and nobody looks. */
const TABS_AT_ONCE = 25;
/** Of a group of radio buttons, Tab reaches the one that is chosen; arrows reach the others. */
const REACHABLE =
  ':is(a[href], button, input:not([type=radio]), select, textarea, summary):not(:disabled), [tabindex="0"]';
/**
 * What comes and goes while one looks, what is folded away, which its summary is not, and a field that nobody sees: the button beside
 * it opens it.
 */
const PASSED_OVER = '.live, details:not([open]) > :not(summary), input.unseen';

/** What a page that is gone through with keys remembers. */
interface Watched extends Window {
  /** What must be reached: what could be when it began. */
  first: Element[];
  seen: Set<Element>;
}

/** Begins to watch what has the focus. How many Tabs go through the page once. */
const watch = (page: Page) =>
  page.evaluate(
    ([reachable, passedOver]) => {
      const watched = window as unknown as Watched;
      const all = [...document.querySelectorAll(reachable!)];
      watched.first = all.filter((one) => one.checkVisibility() && !one.closest(passedOver!));
      watched.seen = new Set();
      document.addEventListener('focusin', ({ target }) => watched.seen.add(target as Element));
      (document.activeElement as HTMLElement | null)?.blur();
      return all.length;
    },
    [REACHABLE, PASSED_OVER],
  );

/** What was to be reached when it began, still is, and was not. */
const listMissed = (page: Page) =>
  page.evaluate(
    ([reachable, passedOver]) => {
      const { first, seen } = window as unknown as Watched;
      return first
        .filter((one) => !seen.has(one) && one.isConnected && one.matches(reachable!))
        .filter((one) => one.checkVisibility() && !one.closest(passedOver!))
        .map((one) => one.outerHTML.slice(0, 120));
    },
    [REACHABLE, PASSED_OVER],
  );

const pressTabs = (page: Page, times: number) =>
  Promise.all(Array.from({ length: times }, () => page.keyboard.press('Tab')));

/** Fails where the Tab key does not reach everything that can be clicked, or stays somewhere. What comes meanwhile is left out. */
export async function assertReachable(page: Page, where: string): Promise<void> {
  let until = Math.min((await watch(page)) + SPARE_TABS, TABS_MAX);
  // Live rows come while it is gone through: what is behind them is reached later.
  for (let tabs = 0; ; ) {
    for (; tabs < until; tabs += TABS_AT_ONCE) await pressTabs(page, Math.min(TABS_AT_ONCE, until - tabs));
    const missed = await listMissed(page);
    if (missed.length === 0) return;
    if (tabs >= TABS_MAX) assert.fail(`${where}: the keyboard misses ${missed.slice(0, 5).join('\n')}`);
    until = Math.min(tabs + missed.length + SPARE_TABS, TABS_MAX);
  }
}
