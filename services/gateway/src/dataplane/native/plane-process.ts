import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { FrameReader, frame, uint32Frame } from './frames.ts';
import { COMMANDS } from './layout.ts';
import type { SharedStats } from './shared-stats.ts';

export interface PlaneProcessOptions {
  readonly path: string;
  readonly settings: readonly (readonly [string, string | number])[];
  readonly stats: SharedStats;
  readonly onFrame: (type: string, payload: Buffer) => void;
  /** What it wrote to its standard error: nothing, unless something is very wrong. */
  readonly onNoise: (text: string) => void;
}

/** The native plane as a running program, and the pipe to it. */
export class PlaneProcess {
  readonly #child: ChildProcess;
  /** None where the program could not be started for want of descriptors. */
  readonly #input: Writable | undefined;
  readonly #stats: SharedStats;
  #bytesSaid = 0;
  #failure: Error | undefined;
  readonly ended: Promise<void>;

  constructor({ path, settings, stats, onFrame, onNoise }: PlaneProcessOptions) {
    stats.announce(0);
    this.#stats = stats;
    const child = spawn(
      path,
      settings.map(([key, value]) => `${key}=${value}`),
      { stdio: ['pipe', 'pipe', 'pipe', stats.fd] },
    );
    this.#child = child;
    this.#input = child.stdin ?? undefined;
    // Its end shows as `close` of the process.
    this.#input?.on('error', () => {});
    this.ended = new Promise((resolve) =>
      child
        .once('close', () => resolve())
        .once('error', (error) => {
          this.#failure = error;
          resolve();
        }),
    );
    const reader = new FrameReader();
    child.stdout?.on('data', (chunk: Buffer) => {
      for (const { type, payload } of reader.push(chunk)) onFrame(type, payload);
    });
    child.stderr?.on('data', (chunk) => onNoise(String(chunk)));
  }

  get exit(): string {
    const { exitCode, signalCode } = this.#child;
    return this.#failure?.message ?? signalCode ?? `code ${exitCode}`;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  write(bytes: Buffer): void {
    this.#bytesSaid += bytes.length;
    this.#stats.announce(this.#bytesSaid);
    this.#input?.write(bytes);
  }

  /** Tells it to stop listening, to let what is open come to its end for so long, and to end. */
  async stop(drainMs: number): Promise<void> {
    this.write(uint32Frame(COMMANDS.stop, drainMs));
    await this.ended;
  }

  /** It goes on without us. */
  letGo(): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const stream of [stdin, stdout, stderr]) stream?.destroy();
    this.#child.unref();
  }

  listen(): void {
    this.write(frame(COMMANDS.listen));
  }
}
