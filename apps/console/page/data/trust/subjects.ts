/** What a mark stands beside: what it follows from, and what it leaves open. */
export interface Meaning {
  readonly what: string;
  readonly by: string;
  readonly open: string;
}

export const SUBJECTS = {
  message: {
    what: 'a message',
    by: 'its hash and signature; the text is on its page, byte by byte',
    open: 'its status, when it came, and the channel in the network form',
  },
  delegation: {
    what: 'whom somebody signed for',
    by: 'what the owner signed of who may, by the rules of core nodes',
    open: 'that the owner signed nothing newer',
  },
  machine: {
    what: 'a machine, and a line of its history',
    by: 'the folding of its signed messages, which its history links',
    open: 'that no message is missing, or newer',
  },
  hostname: { what: 'a host name', by: "the machine's hash", open: 'that a gateway leads there: it says so' },
  address: {
    what: 'an address',
    by: "the machine's hash, and the newest allocation of a scheduler that you believe",
    open: 'that the machine answers there',
  },
  score: {
    what: 'a score',
    by: 'the message of a monitor; "Recompute" does the scoring again, line by line',
    open: 'that the monitor measured honestly',
  },
  node: {
    what: 'where a node is',
    by: 'its newest announcement; "Ask for its key there" has it sign',
    open: 'in which country, and who runs it',
  },
  system: {
    what: 'the network that a node is in',
    by: 'the newest measurement of a monitor, whose signature and hash were checked',
    open: "the monitor's table of networks, and in which country it is",
  },
  core: {
    what: 'where a core node is',
    by: 'its signature over the URL and what this tab made up, with the key that it announced',
    open: 'that it is the node of somebody whom you know: compare its key',
  },
  balance: {
    what: 'a balance',
    by: '"Add up": the signed lines of credit publishers that you believe',
    open: 'that the core node lists every line',
  },
  random: {
    what: 'random values',
    by: 'seed, range, and the proof of the key, which are beside them',
    open: 'who chose the seed, and how often',
  },
  confirmation: {
    what: 'a confirmation',
    by: 'the transaction and the archive, from an endpoint that you name',
    open: 'that the endpoint tells the truth, and the block stays',
  },
  file: {
    what: 'a file that you send',
    by: 'its hash, which is computed here and signed',
    open: 'how long nodes keep it',
  },
  page: {
    what: 'this page',
    by: 'nothing in it: "skerry console --check" compares it with a signed release',
    open: 'that the same is served to others, and tomorrow',
  },
} as const satisfies Readonly<Record<string, Meaning>>;

export type Subject = keyof typeof SUBJECTS;
