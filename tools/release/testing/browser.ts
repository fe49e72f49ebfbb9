/** What a page in a browser says. esbuild and playwright-core are loaded by name: the repository's types are checked without them. */

interface Bundler {
  build(options: object): Promise<{ readonly outputFiles: readonly { readonly text: string }[] }>;
}

interface Page {
  goto(url: string): Promise<unknown>;
  waitForEvent(event: 'console'): Promise<{ text(): string }>;
  waitForEvent(event: 'pageerror'): Promise<Error>;
}

interface BrowserType {
  launch(options: { executablePath: string; args: string[] }): Promise<{
    newPage(): Promise<Page>;
    close(): Promise<void>;
  }>;
}

/** Debian's, which the tests' prerequisites install. */
export const BROWSER = '/usr/bin/chromium-headless-shell';

const load = (name: string): Promise<unknown> => import(name);

/** An application and everything that it imports in one script, as a page loads it. */
export async function bundle(entry: string): Promise<string> {
  const { build } = (await load('esbuild')) as Bundler;
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    minify: true,
    write: false,
    logLevel: 'error',
  });
  return outputFiles[0]!.text;
}

/** The first line that a page writes to its console, or the error that it ends with. */
export async function readConsole(url: string): Promise<string> {
  const { chromium } = (await load('playwright-core')) as { chromium: BrowserType };
  const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    const said = Promise.race([
      page.waitForEvent('console').then((message) => message.text()),
      page.waitForEvent('pageerror').then((error) => error.message),
    ]);
    await page.goto(url);
    return await said;
  } finally {
    await browser.close();
  }
}
