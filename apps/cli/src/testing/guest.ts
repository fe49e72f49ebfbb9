import { skerry, succeed } from './shell.ts';

const WITHOUT_QUESTIONS = '-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR';

/** A machine of a scenario, as its owner reaches it by ssh. */
export interface Guest {
  readonly name: string;
  readonly ipv6: string;
  /** The file of the private key that opens it. */
  readonly sshKey: string;
}

/** What a command in the machine prints; rejects where it fails. */
export const inside = ({ name }: Pick<Guest, 'name'>, command: string) =>
  skerry('instance', 'ssh', name, '--', command);

/** Puts a file into the machine. */
export async function put({ ipv6, sshKey }: Guest, from: string, to: string, mode = '644'): Promise<void> {
  const command = `ssh ${WITHOUT_QUESTIONS} -i ${sshKey} root@${ipv6} 'cat > ${to} && chmod ${mode} ${to}' < ${from}`;
  await succeed('sh', '-c', command);
}
