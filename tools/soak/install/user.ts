import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { IMAGE_FILES, type Image } from '../../../services/compute/src/images/image.ts';
import type { Machine } from '../../../services/compute/src/testing/namespaces.ts';
import { makeTinyDisk, POWER_BUTTON_MARK } from '../../../services/compute/src/testing/tiny-guest.ts';
import { until } from '../../../services/compute/src/testing/wait.ts';
import { coreUrl, DOMAIN, startThere, TWO } from './places.ts';
import type { Unpacked } from './third-place.ts';

/** Only what hangs takes as long. */
const REACH_MS = 1_800_000;
const LINE_MS = 300_000;
const CREATE_MINUTES = 30;
/** Longer than the command itself waits. */
const COMMAND_MS = (CREATE_MINUTES + 5) * 60_000;
const EVERY_MS = 2_000;
const NAME = 'web';

/** It says how often it was shut down, which it knows from its disk. */
const pageOf = (times: number | '$times') => `hello from a machine that was shut down ${times} times`;
const HTTP_ANSWER = [
  'while read -r line; do [ "$' + '{#line}" -le 1 ] && break; done',
  'times=0',
  `[ -e ${POWER_BUTTON_MARK} ] && times=$(wc -l < ${POWER_BUTTON_MARK})`,
  `page="${pageOf('$times')}"`,
  `printf 'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n%s' $(echo -n "$page" | wc -c) "$page"`,
].join('\n');
/** What the guest serves: a page, and where TLS would be, an echo. The gateway does not decrypt, so it is the same to it. */
const ANSWERS = { 80: HTTP_ANSWER, 443: 'exec cat' };

/** Somebody with the command of the package and nothing else, at a place of their own. */
export class User {
  readonly #place: Machine;
  readonly #command: Unpacked;
  readonly #home: string;
  #image = '';

  constructor(place: Machine, command: Unpacked, home: string) {
    this.#place = place;
    this.#command = command;
    this.#home = home;
  }

  #skerry(...args: string[]): Promise<string> {
    const { node, command } = this.#command;
    const environment = [`SKERRY_HOME=${this.#home}`, `HOME=${this.#home}`];
    return this.#place.runWithin(COMMAND_MS, 'env', ...environment, node, command, ...args);
  }

  async begin(image: Image): Promise<void> {
    await mkdir(this.#home, { recursive: true });
    await this.#skerry('network', 'add', 'here', coreUrl, '--use');
    await this.#skerry('key', 'new');
    const disk = join(this.#home, 'tiny.qcow2');
    await writeFile(
      disk,
      await makeTinyDisk(join(image.directory, IMAGE_FILES.initrd), { answers: ANSWERS }),
    );
    this.#image = (await this.#skerry('file', 'put', disk)).trim();
  }

  async create(): Promise<void> {
    const size = ['--memory', '128', '--disk', '1', '--allow', '22,80,443'];
    await this.#skerry(
      ...['instance', 'create', '--name', NAME, '--image', this.#image, ...size],
      ...['--wait', '--wait-timeout', `${CREATE_MINUTES}m`],
    );
  }

  async #host(): Promise<string> {
    const name = (await this.#skerry('domain', 'name', NAME)).trim();
    assert.match(name, /^[a-z]+(-[a-z]+){3}\./);
    assert.ok(name.endsWith(`.${DOMAIN}`), name);
    return name;
  }

  /** Until the machine answers under its name, on a disk with which it was properly shut down so often. */
  async reach(shutDowns: number): Promise<void> {
    const url = `http://${await this.#host()}/`;
    const page = pageOf(shutDowns);
    let last = '';
    const ask = async () => {
      last = await this.#place.run('curl', '-s', '-m', '60', url).catch((error: Error) => error.message);
      return last === page;
    };
    await until(`${url} answers: ${page}`, REACH_MS, ask, EVERY_MS).catch((error: Error) => {
      throw new Error(`${error.message}. Its last answer: ${last}`, { cause: error });
    });
  }

  /** A connection to the machine through the gateway, until it is let go. */
  async stream() {
    const script = join(import.meta.dirname, 'stream.ts');
    const host = await this.#host();
    const child = await startThere(this.#place, process.execPath, script, TWO.ipv4.guest, host);
    let lines = 0;
    createInterface({ input: child.stdout }).on('line', () => lines++);
    return {
      /** Resolves when another line came back. */
      async isAlive(): Promise<void> {
        const before = lines;
        await until('a line comes back', LINE_MS, () => {
          assert.equal(child.exitCode, null, 'the connection through the gateway was dropped');
          return lines > before;
        });
      },
      [Symbol.asyncDispose]: async () => void child.kill('SIGKILL'),
    };
  }
}
