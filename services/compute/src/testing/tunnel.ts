import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { run } from '../host/run.ts';

/** More packets than a scenario sends at once. */
const QUEUE = '2000';

const READER = `import fcntl, os, struct, sys
tunnel = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tunnel, 0x400454ca, struct.pack('16sH22x', sys.argv[1].encode(), 0x1001))
print('up', flush=True)
while os.read(tunnel, 65536): pass`;

/** A way out that is a tunnel, as to a provider of IPv6: it has no router and no neighbours. What is sent into it is gone. */
export class Tunnel implements AsyncDisposable {
  readonly name: string;
  readonly #end: () => Promise<unknown>;

  private constructor(name: string, end: () => Promise<unknown>) {
    this.name = name;
    this.#end = end;
  }

  static async open(name: string): Promise<Tunnel> {
    const reader = spawn('python3', ['-c', READER, name], { stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(reader, 'exit');
    await awaitOutput(reader, 'the reader of a tunnel', hear(reader, ['stderr']));
    await run('ip', ['link', 'set', name, 'txqueuelen', QUEUE, 'up']);
    return new Tunnel(name, () => {
      reader.kill('SIGKILL');
      return ended;
    });
  }

  /** Packets that were sent into it. */
  async countSent(): Promise<number> {
    const [link] = JSON.parse(await run('ip', ['-j', '-s', 'link', 'show', this.name]));
    return link.stats64.tx.packets;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }
}
