import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { CoreClient, createSigner, generatePrivateKey, type Signer } from '@skerry/client';
import { hostnameOf, LIMITS } from '@skerry/protocol';
import type { Page, Route } from 'playwright-core';
import type { Browsing } from '../browser.ts';
import { until } from '../shell.ts';
import { resumeUpload } from './upload.ts';

/** What is done in the console by clicking: with a wallet, and with a key that a passkey guards. */

/** Only what hangs takes as long. */
const SOON_MS = 120_000;
const WALLET = 'Wallet of the test';
/** Ports that the form opens by itself. */
const OPEN = '22, 80, 443';

/**
 * The page of a machine asks for it once more while it is deleted: what the page asks for then is not there. The scheduler has no room for
 * one that is too large.
 */
const EXPECTED = /status of 404 .*[0-9a-f]{64}|status of 503 .*\/simulate\?/;

/** How a wallet answers. */
type Mood = 'honest' | 'refuses' | 'lies';

/** A wallet that its owner can switch to another account. */
interface Announced {
  /** Chooses one of its accounts, or none. */
  switchTo(signer: Signer | undefined): Promise<void>;
}

/** What the wallet leaves in the page for the test. */
interface InPage {
  signInTest: (hex: string, address: string) => Promise<string | null>;
  switchInTest: (accounts: readonly string[]) => void;
}

/** A wallet as a browser's extension announces it (EIP-6963). @param moodOf asked before each signature */
async function announceWallet(
  page: Page,
  [signer, other]: readonly [Signer, Signer],
  moodOf: () => Mood,
): Promise<Announced> {
  const liar = createSigner(generatePrivateKey());
  await page.exposeFunction('signInTest', (hex: string, address: string) => {
    const asked = [signer, other].find((one) => one.address === address);
    assert.ok(asked, `${address} is an account of the wallet`);
    const text = Buffer.from(hex.slice(2), 'hex').toString();
    const mood = moodOf();
    return mood === 'refuses' ? null : (mood === 'lies' ? liar : asked).sign(text);
  });
  await page.addInitScript(
    ([address, name]) => {
      const inPage = globalThis as unknown as InPage;
      const listeners: ((accounts: readonly string[]) => void)[] = [];
      inPage.switchInTest = (accounts) => {
        for (const listener of listeners) listener(accounts);
      };
      const provider = {
        async request({ method, params = [] }: { method: string; params?: string[] }) {
          if (method === 'eth_requestAccounts') return [address];
          const signature = await inPage.signInTest(params[0]!, params[1]!);
          if (signature === null) throw Object.assign(new Error('User rejected'), { code: 4001 });
          return signature;
        },
        on(event: string, listener: (accounts: readonly string[]) => void) {
          if (event === 'accountsChanged') listeners.push(listener);
        },
      };
      const info = { uuid: 'test', name, icon: 'data:image/png;base64,', rdns: 'test' };
      addEventListener('eip6963:requestProvider', () =>
        dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: { info, provider } })),
      );
    },
    [signer.address, WALLET] as const,
  );
  return {
    switchTo: (chosen) =>
      page.evaluate(
        (accounts) => (globalThis as unknown as InPage).switchInTest(accounts),
        chosen ? [chosen.address] : [],
      ),
  };
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** Presses what begins it, looks at what is to be signed, and signs. Resolves with what the dialog said. */
async function sign(page: Page, begin: string): Promise<string> {
  await button(page, begin).first().click();
  const dialog = page.locator('dialog.sign');
  await button(page, 'Sign').waitFor();
  const said = await dialog.innerText();
  assert.equal(await dialog.locator('[role=status]').count(), 1, 'advice that comes later is told');
  assert.equal(await dialog.evaluate(({ scrollTop }) => scrollTop), 0, 'it begins with what is to be read');
  await button(page, 'Sign').click();
  return said;
}

/** A press is one, also where the price that its form waits for comes between its two halves. */
async function pressWhilePriceComes(page: Page): Promise<void> {
  const prices = '**/api/v0/credits/prices';
  const [asked, wanted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const hold = async (route: Route) => {
    asked.resolve();
    await wanted.promise;
    await route.continue();
  };
  await page.route(prices, hold, { times: 1 });
  await page.getByLabel('MiB of memory').fill('256');
  await asked.promise;
  const press = button(page, 'Look at it and sign');
  await press.hover();
  await page.mouse.down();
  wanted.resolve();
  await page.locator('[data-price=told]').waitFor();
  await page.mouse.up();
  await button(page, 'Sign').waitFor();
}

/** A program by a wallet that refuses, lies, and signs at last; another by the account that its owner switched to. */
async function useWallet(browser: Browsing, { core, isRunning }: Deeds): Promise<void> {
  const [signer, other] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())] as const;
  const client = new CoreClient({ url: core });
  const countOf = async ({ address }: Signer) =>
    (await client.listMessages({ addresses: address })).pagination.total;
  let mood: Mood = 'refuses';
  const look = { width: 390, theme: 'light', expects: /ERR_FAILED/ } as const;
  await browser.look('about:blank', look, async (page) => {
    const wallet = await announceWallet(page, [signer, other], () => mood);
    const verifier = '**/console/verifier-*.js';
    await page.route(verifier, (route) => route.abort());
    await page.goto(`${core}/#/programs`);
    await page.getByRole('link', { name: 'choose a wallet or make a key' }).click();
    await page.getByText(WALLET).waitFor();
    await button(page, 'Connect').click();
    await page.getByText(signer.address).waitFor();
    await page.goto(`${core}/#/programs`);
    await page.getByLabel('Begin with').selectOption({ label: 'Hello, in Python' });
    await button(page, 'Look at it and sign').click();
    await page.getByText('the verifier failed').first().waitFor();
    // Once it can be loaded the page need not be loaded anew.
    await page.unroute(verifier);
    await page.route('**/api/v0/credits/prices', (route) => route.abort(), { times: 1 });
    for (const [next, why, price] of [
      ['refuses', 'you refused it', /The core node does not say what it costs/],
      ['lies', 'is no signature of', /It costs[\s\S]* in 30 days/],
    ] as const) {
      mood = next;
      const said = await sign(page, 'Look at it and sign');
      assert.match(said, /Publish the program hello\.py/);
      assert.match(said, price);
      await page.getByText(why).waitFor();
    }
    assert.equal(await countOf(signer), 0);
    mood = 'honest';
    await sign(page, 'Look at it and sign');
    await button(page, 'Run').waitFor();
    if (isRunning) {
      await runTwice(page);
      await readLog(page);
    }
    await wallet.switchTo(other);
    await page.locator(`.me[title="${other.address}"]`).waitFor();
    await page.goto(`${core}/#/programs`);
    await page.getByLabel('Begin with').selectOption({ label: 'Hello, in Python' });
    await pressWhilePriceComes(page);
    await button(page, 'Do not sign').click();
    assert.ok((await sign(page, 'Look at it and sign')).includes(other.address));
    await button(page, 'Run').waitFor();
    assert.deepEqual([await countOf(signer), await countOf(other)], [1, 1]);
    await wallet.switchTo(undefined);
    await page.locator('.me[title="choose a key"]').waitFor();
  });
}

/** Cold first, warm then: its answer, and both times. */
async function runTwice(page: Page): Promise<void> {
  await button(page, 'Run').click();
  await page.locator('[data-run]').waitFor();
  assert.match(await page.locator('[data-run]').innerText(), /"hello": "Ada"/);
  await button(page, 'Run').click();
  await page.locator('[data-run=warm]').waitFor();
  await page.getByLabel('Variables').fill('no equals sign');
  await button(page, 'Run').click();
  await page.getByText('has the form name=value').waitFor();
}

/** What it printed is told to its owner, who signs for the node; runs that come are seen without asking again. */
async function readLog(page: Page): Promise<void> {
  await sign(page, 'Show its log');
  const log = page.locator('[data-log] pre');
  const greetings = async () => (await log.innerText()).split('greeted Ada').length - 1;
  await log.waitFor();
  const before = await greetings();
  assert.ok(before >= 2, await log.innerText());
  await page.getByLabel('Variables').fill('name=Ada');
  await button(page, 'Run').click();
  await until('the new run is seen', SOON_MS, async () => (await greetings()) > before);
}

/** A key that is made here, kept behind a passkey, and opened again after the page was loaded anew. */
async function makeKey(page: Page, core: string): Promise<string> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const options = { protocol: 'ctap2', ctap2Version: 'ctap2_1', transport: 'internal' } as const;
  const able = { hasResidentKey: true, hasUserVerification: true, hasPrf: true, isUserVerified: true };
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: { ...options, ...able, automaticPresenceSimulation: true },
  });
  await page.goto(`${core}/#/create`);
  const name = page.getByLabel('Name, as you call it');
  await name.fill('typed before');
  await page.getByRole('link', { name: 'choose a wallet or make a key' }).click();
  await button(page, 'Make a key').click();
  await page.getByRole('link', { name: 'Go on where you were' }).click();
  await page.getByRole('heading', { name: 'Create a machine' }).waitFor();
  assert.equal(await name.inputValue(), 'typed before');
  await page.goBack();
  await button(page, 'A passkey').click();
  await page.getByText('key behind a passkey').waitFor();
  await page.getByText('Export it').click();
  await button(page, 'Show the private key').click();
  const { address } = createSigner((await page.locator('[data-secret]').textContent())!);
  await page.reload();
  await button(page, 'Open').click();
  await page.getByText(address).waitFor();
  return address;
}

/** A file that is no disk, so that no machine is emulated. Gives its hash. */
async function storeFile(page: Page, core: string): Promise<string> {
  await page.goto(`${core}/#/files`);
  const file = { name: 'disk', mimeType: 'application/octet-stream', buffer: Buffer.from('dropped') };
  await page.getByLabel('files', { exact: true }).setInputFiles(file);
  assert.match(await sign(page, 'Sign and send'), /everybody can read/);
  const stored = page.locator('[data-state=stored]');
  await stored.waitFor();
  return (await stored.locator('code').first().getAttribute('title'))!;
}

/** Another name for a machine, and a domain: its DNS records are shown, whether or not anybody has them. */
async function nameMachine(page: Page): Promise<void> {
  await page.getByLabel('Name, as you call it').fill('renamed');
  assert.match(await sign(page, 'Rename'), /Change the machine[\s\S]*renamed/);
  await page.getByRole('heading', { name: 'Machine renamed' }).waitFor();
  await page.getByLabel('Domain', { exact: true }).fill('no domain');
  await button(page, 'Attach it').click();
  await page.getByText('is not a domain name such as').waitFor();
  await page.getByLabel('Domain', { exact: true }).fill('www.example.test');
  assert.match(await sign(page, 'Attach it'), /Lead www\.example\.test to the machine/);
  await page.locator('[data-domain=waiting]').getByText('_control.www.example.test').waitFor();
  assert.match(await sign(page, 'Detach www.example.test'), /to no machine any more/);
  await page.locator('[data-domain]').waitFor({ state: 'detached' });
}

/** Where no node has room the advice comes to the question that is open, and its reader stays where they are. */
async function refuseTooLarge(page: Page): Promise<void> {
  const memory = page.getByLabel('MiB of memory');
  const before = await memory.inputValue();
  await memory.fill(`${LIMITS.instanceMemoryMibMax}`);
  await button(page, 'Look at it and sign').click();
  const refuse = button(page, 'Do not sign');
  await refuse.focus();
  const advice = await page.locator('dialog.sign [data-room=lacking]').innerText();
  assert.match(advice, /no compute node/);
  assert.equal(await refuse.evaluate((one) => one === document.activeElement), true);
  await refuse.click();
  await page.getByText('you did not sign it').waitFor();
  await memory.fill(before);
}

/** A machine, from its price and its name to its end. */
async function ownMachine(page: Page, core: string, image: string): Promise<void> {
  const client = new CoreClient({ url: core });
  await page.goto(`${core}/#/machines`);
  await page.getByRole('link', { name: 'Create a machine' }).click();
  await page.getByLabel('Image').fill(image);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    button(page, 'Make an ssh key here').click(),
  ]);
  assert.match(await readFile(await download.path(), 'utf8'), /^-----BEGIN OPENSSH PRIVATE KEY-----/);
  await refuseTooLarge(page);
  const said = await sign(page, 'Look at it and sign');
  assert.match(said, /14,250 credits an hour/);
  await page.locator('ol.chain').waitFor();
  const id = new URL(page.url()).hash.split('/').at(-1)!;
  assert.ok(said.includes(hostnameOf(id)), `the name of ${id} was shown before: ${said}`);
  assert.equal(await page.locator('.hostname').textContent(), hostnameOf(id));
  await page.getByRole('link', { name: 'everything about it' }).click();
  await page.getByText('342,000 ($0.34)').waitFor();
  assert.equal(await page.locator('.facts div', { hasText: 'open ports' }).locator('dd').innerText(), OPEN);
  await page.getByLabel('Ports', { exact: true }).fill('22, 70000');
  await button(page, 'Change the ports').click();
  await page.getByText('The ports are numbers up to 65535').waitFor();
  await page.getByLabel('Ports', { exact: true }).fill('22, 8443, udp:443');
  assert.match(await sign(page, 'Change the ports'), /Change the machine[\s\S]*"allowedPorts":\[22,8443\]/);
  await until('its ports are changed', SOON_MS, async () => {
    const { firewall } = await client.getInstance(id);
    return firewall.allowedPorts.join() === '22,8443' && firewall.allowedUdpPorts?.join() === '443';
  });
  await nameMachine(page);
  assert.match(await sign(page, 'Stop'), /Stop the machine/);
  const untilDesired = (desired: string) =>
    until(`it is to be ${desired}`, SOON_MS, async () => (await client.getInstance(id)).desired === desired);
  await untilDesired('stopped');
  assert.match(await sign(page, 'Start'), /Start the machine/);
  await untilDesired('running');
  assert.match(await sign(page, 'Restart'), /Restart the machine/);
  await until(
    'it is to be restarted',
    SOON_MS,
    async () => (await client.getInstance(id)).restart_id !== null,
  );
  await button(page, 'Delete').click();
  assert.match(await sign(page, 'Delete it and its disk'), /ends/);
  await until('it is gone', SOON_MS, async () => (await client.getMessageStatus(id)).status === 'forgotten');
}

export interface Deeds {
  readonly core: string;
  /** Whether the network runs programs. */
  readonly isRunning: boolean;
}

/** The main jobs by clicking: a wallet and a program; a key, a file and a machine. */
export async function actInConsole(browser: Browsing, deeds: Deeds): Promise<void> {
  await useWallet(browser, deeds);
  await resumeUpload(browser, deeds.core);
  // A passkey belongs to a name.
  const core = deeds.core.replace('127.0.0.1', 'localhost');
  const looks = { width: 1_600, theme: 'dark', expects: EXPECTED } as const;
  await browser.look('about:blank', looks, async (page) => {
    await makeKey(page, core);
    await ownMachine(page, core, await storeFile(page, core));
  });
}
