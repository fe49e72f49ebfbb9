import { SCORING_CHANNEL } from '@skerry/protocol';
import { shellWord } from '@skerry/protocol/text/shell-word';
import { localUrl, type Standing } from './counted.ts';
import type { RoleSettings } from './roles.ts';

/**
 * What to do after a node has joined, for people. A command stands at the end of its line, without a full stop: it is copied. Pure.
 * @param isUnit whether it is a unit of systemd, whose settings and data only root can read
 */
export function nextSteps(
  settings: RoleSettings,
  { state, id, address }: Standing,
  { coreUrl, isUnit }: { readonly coreUrl: string; readonly isUnit: boolean },
): string[] {
  const { role, announceUrl } = settings;
  /** Without --core, a command asks the usual port of this server, or the network that was chosen before. */
  const at = (url: string, command: string) => `${command} --core ${shellWord(url)}`;
  const there = (command: string) => at(coreUrl, command);
  const asRoot = isUnit ? ', as root' : '';
  const backUp = `Save what the node must not lose${asRoot}: skerry backup FILE --role ${role}`;
  switch (role) {
    case 'compute':
      return [
        ...(state === 'known'
          ? [
              `Ask the scheduler's operator to put ${address} into SKERRY_SCHEDULER_NODES, or wait for scores of it.`,
            ]
          : []),
        `See what it runs: ${there('skerry scheduler nodes')}`,
        backUp,
        `Take it away again${asRoot}: skerry leave --role compute`,
      ];
    case 'core':
      return [
        `Ask the operator of ${coreUrl} to put ${announceUrl ?? 'the URL of this node'} into SKERRY_CORE_PEERS, so that new messages come at once.`,
        `Watch it: ${at(localUrl(settings), 'skerry node status')}`,
        backUp,
      ];
    case 'gateway':
      return [
        `Open an instance by its name: ${there('skerry domain name NAME')}`,
        `Why a name does not answer: ${there('skerry domain why NAME')}`,
      ];
    default:
      return [
        `Ask the operators of core nodes to put ${id} into SKERRY_CORE_SCORING_PUBLISHERS, so that its measurements count.`,
        `Its first report comes at the end of the hour: ${there(`skerry message list --address ${id} --channel ${SCORING_CHANNEL}`)}`,
        `See what scores come of its reports: ${there(`skerry score compute --publisher ${id}`)}`,
        'A node has a score where its autonomous system is known, SKERRY_MONITOR_ASN_FILE, and its version counts, SKERRY_MONITOR_RELEASES.',
        backUp,
      ];
  }
}
