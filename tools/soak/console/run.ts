import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import { startMadeUpNode } from './node.ts';

/** What is seen of a browser that shows live messages. */
export interface Watched {
  /** Events of the node, and those that the page counted. */
  readonly sent: number;
  readonly counted: number;
  /** Rows that are not the event of their number: a gap before, or one that came twice. */
  readonly misplaced: number;
  /** How often the connection was cut, and found again. */
  readonly cuts: number;
  /** Between two frames, ms. */
  readonly frameP50: number;
  readonly frameP95: number;
  readonly frameMost: number;
  /** Of all the browser's pages, when it had settled and at most after. */
  readonly memoryBefore: number;
  readonly memoryMost: number;
}

export interface WatchOptions {
  readonly perSecond: number;
  readonly seconds: number;
  readonly cuts: number;
  readonly onProgress?: (line: string) => void;
}

/** Debian's. */
const EXECUTABLE = '/usr/bin/chromium-headless-shell';
const STEP_MS = 500;
/** Before this the page is still being loaded. */
const SETTLED_STEPS = 4;
/** Only what hangs takes as long. */
const HANG_MS = 120_000;

/** As far as it is looked at here. */
interface State {
  readonly total: number;
  readonly rows: readonly { readonly number: number; readonly item_hash: string }[];
}
interface Seen {
  frames: number[];
  total: number;
  misplaced: number;
  offset: number | undefined;
}

/** In the page: what the worker tells it, and when frames are drawn. */
function listen(): void {
  const seen: Seen = { frames: [], total: 0, misplaced: 0, offset: undefined };
  (globalThis as { seen?: Seen }).seen = seen;
  const Original = Worker;
  globalThis.Worker = class extends Original {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options);
      this.addEventListener('message', ({ data }: MessageEvent<State>) => {
        if (typeof data.total !== 'number') return;
        seen.total = data.total;
        for (const { number, item_hash: hash } of data.rows) {
          const event = Number.parseInt(hash.slice(-12), 16);
          seen.offset ??= event - number;
          if (event - number !== seen.offset) seen.misplaced++;
        }
      });
    }
  };
  let before = performance.now();
  const frame = (now: number) => {
    seen.frames.push(now - before);
    before = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

const readSeen = (page: Page) => page.evaluate(() => (globalThis as unknown as { seen: Seen }).seen);

/** Nothing of a process that has ended meanwhile. */
function readResident(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

async function readMemory(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  try {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo');
    return processInfo
      .filter(({ type }) => type === 'renderer')
      .reduce((sum, { id }) => sum + readResident(id), 0);
  } finally {
    await session.detach();
  }
}

const part = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

/** The reader follows, then scrolls in what was, then follows again. */
async function move(page: Page, step: number): Promise<void> {
  const list = page.locator('section.live');
  if (step % 8 === 4) await list.hover();
  if (step % 8 > 4) await page.mouse.wheel(0, 700);
  if (step % 8 === 7)
    await page
      .locator('.actions button.plain')
      .first()
      .click({ timeout: 1_000 })
      .catch(() => undefined);
  if (step % 8 === 0) await page.mouse.move(5, 5);
}

/** A browser on a made-up node's live messages, whose connection is cut again and again. */
export async function watchConsole({ perSecond, seconds, cuts, onProgress }: WatchOptions): Promise<Watched> {
  await using node = await startMadeUpNode(perSecond);
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage({ viewport: { width: 1_600, height: 900 } });
    page.setDefaultTimeout(HANG_MS);
    await page.addInitScript(listen);
    await page.goto(`${node.url}#/messages`);
    await page.locator('section.live li').first().waitFor();
    const startMs = Date.now();
    const elapsed = () => (Date.now() - startMs) / 1_000;
    let [memoryBefore, memoryMost, done] = [0, 0, 0];
    // On a busy machine the time may be over before the last cut.
    for (let step = 0; elapsed() < seconds || done < cuts; step++) {
      await pause(STEP_MS);
      await move(page, step);
      if (done < cuts && elapsed() >= ((done + 1) * seconds) / (cuts + 1)) {
        node.cut();
        done++;
      }
      const memory = await readMemory(browser);
      if (step <= SETTLED_STEPS) memoryBefore = memory;
      memoryMost = Math.max(memoryMost, memory);
      if (step % 20 === 19)
        onProgress?.(`${elapsed().toFixed(0)} s: ${(await readSeen(page)).total} messages`);
    }
    const sent = node.total();
    const seen = await caughtUp(page, sent);
    const frames = seen.frames.slice(10).sort((one, other) => one - other);
    return {
      ...{ sent, counted: seen.total, misplaced: seen.misplaced, cuts: done, memoryBefore, memoryMost },
      ...{ frameP50: part(frames, 0.5), frameP95: part(frames, 0.95), frameMost: frames.at(-1) ?? 0 },
    };
  } finally {
    await browser.close();
  }
}

/** Once the page has what there was; it may have more by then. */
async function caughtUp(page: Page, sent: number): Promise<Seen> {
  const untilMs = Date.now() + HANG_MS;
  for (;;) {
    const seen = await readSeen(page);
    if (seen.total >= sent || Date.now() > untilMs) return seen;
    await pause(STEP_MS);
  }
}
