import assert from 'node:assert/strict';
import { type BrowserContext, chromium, type Page } from 'playwright-core';

/**
 * Looking at the console as people do: in Debian's Chromium, which the tests' prerequisites install. Without the windows around its
 * pages, each of which is a page of its own that nobody sees, it takes half of the processor.
 */
const EXECUTABLE = '/usr/bin/chromium-headless-shell';
/** Nobody looks at what is drawn: emulating a graphics card for it costs more than all the rest of the browser. */
const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-gpu-rasterization'];
/** Only what hangs takes as long. */
const HANG_MS = 120_000;

/** What Chromium says of whatever it is loading when a network device comes or goes, as other tests have them do. */
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';
const GOTO_TRIES = 5;

interface Look {
  readonly width: number;
  readonly theme: 'light' | 'dark';
  /** Whether a certificate may be anybody's; not by default. */
  readonly takesAnyCertificate?: boolean;
  /** By default. */
  readonly runsScripts?: boolean;
  /** Errors that the browser's console may have; none by default. */
  readonly expects?: RegExp;
}

export interface Browsing extends AsyncDisposable {
  /** A page that fails the test when its console has an error, which a violated policy is, or it is wider than its window. */
  look(url: string, look: Look, act: (page: Page) => Promise<void>): Promise<void>;
}

const HEIGHT = 900;

function listenForErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes(NETWORK_CHANGED))
      errors.push(`${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => errors.push(error.message));
  return errors;
}

/** Goes to a page again where that was ended by a change of the machine's network, which says nothing of the page. */
export const goAgain =
  (goto: Page['goto']): Page['goto'] =>
  async (...args) => {
    for (let left = GOTO_TRIES; ; left--) {
      try {
        return await goto(...args);
      } catch (error) {
        if (left === 1 || !String(error).includes(NETWORK_CHANGED)) throw error;
      }
    }
  };

/** Whoever waits for something in a page looks so often: Playwright would with each frame, and make the browser draw all of them. */
export const LOOK_AGAIN = { polling: 50 } as const;

/** What a failure tells of the page: of a long error a run's closing lines show the beginning alone. */
const SAID_CHARS_MAX = 1_500;
const TELL_MS = 5_000;
const WHAT_MATTERS = 'main, dialog[open]';

/** Fails where a page is wider than its window. */
export async function assertFits(page: Page, where: string): Promise<void> {
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(beyond <= 0, `${where} is ${beyond} px wider than its window`);
}

const readPage = async (page: Page): Promise<string> => {
  await page.locator(WHAT_MATTERS).first().waitFor({ timeout: TELL_MS });
  const said = await page.locator(WHAT_MATTERS).allInnerTexts();
  return said
    .join(' | ')
    .replaceAll(/\s*\n\s*/g, ' | ')
    .slice(0, SAID_CHARS_MAX);
};

/** Fails with the error, and with what the page says: why a button is not there stands on it. */
async function tellOf(page: Page, errors: readonly string[], error: unknown): Promise<never> {
  const said = await readPage(page).catch(() => 'nothing that could be read');
  const noted = errors.length > 0 ? `; its console has ${errors.join('; ').slice(0, SAID_CHARS_MAX)}` : '';
  throw new Error(`The page ${page.url()} says: ${said}${noted}\n${error}`, { cause: error });
}

/** @param more arguments of Chromium */
export async function startBrowser(...more: readonly string[]): Promise<Browsing> {
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: [...ARGUMENTS, ...more] });
  return {
    async look(url, { width, theme, takesAnyCertificate = false, runsScripts = true, expects }, act) {
      const context: BrowserContext = await browser.newContext({
        viewport: { width, height: HEIGHT },
        colorScheme: theme,
        reducedMotion: 'reduce',
        locale: 'en-GB',
        timezoneId: 'UTC',
        ignoreHTTPSErrors: takesAnyCertificate,
        javaScriptEnabled: runsScripts,
      });
      context.setDefaultTimeout(HANG_MS);
      try {
        const page = await context.newPage();
        Object.assign(page, { goto: goAgain(page.goto.bind(page)) });
        const errors = listenForErrors(page);
        await page.goto(url);
        await act(page).catch((error: unknown) => tellOf(page, errors, error));
        await assertFits(page, `${url} (${theme})`);
        assert.deepEqual(
          errors.filter((error) => !expects?.test(error)),
          [],
        );
      } finally {
        // An answer that was to be changed may be on its way.
        for (const page of context.pages()) await page.unrouteAll({ behavior: 'ignoreErrors' });
        await context.close();
      }
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}
