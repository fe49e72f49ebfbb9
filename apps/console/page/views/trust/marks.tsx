import { Mark, type MarkKind, Panel } from '../../parts/basic.tsx';

/** What a mark beside something means, where its bytes are, and what it leaves open. */
interface Meaning {
  readonly what: string;
  readonly by: string;
  readonly open: string;
}

const KINDS: readonly (readonly [MarkKind, string])[] = [
  ['proven', 'follows from what was signed, or from a hash, computed in this tab'],
  ['agreed', 'several core nodes say the same; one operator may run them all'],
  ['said', 'one node says so, and nothing that was signed shows it'],
  ['waiting', 'is still being checked'],
  ['wrong', 'is not what was signed, or what follows from it'],
];

const MEANINGS: readonly Meaning[] = [
  {
    what: 'a message',
    by: 'its hash and signature; the text is on its page, byte by byte',
    open: 'its status, when it came, and the channel in the network form',
  },
  {
    what: 'a machine, and a line of its history',
    by: 'the folding of its signed messages, which its history links',
    open: 'that no message is missing, or newer',
  },
  { what: 'a host name', by: "the machine's hash", open: 'that a gateway leads there: it says so' },
  {
    what: 'an address',
    by: "the machine's hash, and the newest allocation of a scheduler that you believe",
    open: 'that the machine answers there',
  },
  {
    what: 'a score',
    by: 'the message of a monitor; "Recompute" does the scoring again, line by line',
    open: 'that the monitor measured honestly',
  },
  {
    what: 'where a node is',
    by: 'its newest announcement; "Ask for its key there" has it sign',
    open: 'in which country, and who runs it',
  },
  {
    what: 'where a core node is',
    by: 'its signature over the URL and what this tab made up, with the key that it announced',
    open: 'that it is the node of somebody whom you know: compare its key',
  },
  {
    what: 'a balance',
    by: '"Add up": the signed lines of credit publishers that you believe',
    open: 'that the core node lists every line',
  },
  {
    what: 'random values',
    by: 'seed, range, and the proof of the key, which are beside them',
    open: 'who chose the seed, and how often',
  },
  {
    what: 'a confirmation',
    by: 'the transaction and the archive, from an endpoint that you name',
    open: 'that the endpoint tells the truth, and the block stays',
  },
  {
    what: 'a file that you send',
    by: 'its hash, which is computed here and signed',
    open: 'how long nodes keep it',
  },
  {
    what: 'this page',
    by: 'nothing in it: "skerry console --check" compares it with a signed release',
    open: 'that the same is served to others, and tomorrow',
  },
];

/** What the marks say, and what they do not. */
export const MarksPanel = () => (
  <Panel title="What the marks prove" wide>
    <ul class="lines">
      {KINDS.map(([kind, meaning]) => (
        <li key={kind}>
          <Mark kind={kind} />
          <span class="grow">{meaning}</span>
        </li>
      ))}
    </ul>
    <div class="scroll">
      <table class="rows" aria-label="what is proven, and what is not">
        <thead>
          <tr>
            <th>What</th>
            <th>Follows from</th>
            <th>Not proven</th>
          </tr>
        </thead>
        <tbody>
          {MEANINGS.map(({ what, by, open }) => (
            <tr key={what}>
              <td data-title="What">{what}</td>
              <td data-title="Follows from">{by}</td>
              <td data-title="Not proven">{open}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </Panel>
);
