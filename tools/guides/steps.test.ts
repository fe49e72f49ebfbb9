import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isPrinted, readSteps } from './steps.ts';

const PAGE = `# A node

\`\`\`sh
skerry doctor
\`\`\`

Prose between.

\`\`\`text
✓ all
\`\`\`

1. In a list:

   <!-- guide: on a server -->
   \`\`\`sh
   apt-get install skerry
   skerry --version
   \`\`\`

## A file

\`\`\`text
belongs to no step
\`\`\`

\`\`\`ini
NAME=value
\`\`\`
`;

describe('steps of a guide', () => {
  test('are its blocks of sh, with what they print and where they can be done', () => {
    assert.deepEqual(readSteps('a.md', PAGE), [
      {
        page: 'a.md',
        line: 4,
        section: 'A node',
        script: 'skerry doctor',
        needsServer: false,
        prints: '✓ all',
      },
      {
        page: 'a.md',
        line: 17,
        section: 'A node',
        script: 'apt-get install skerry\nskerry --version',
        needsServer: true,
        prints: undefined,
      },
    ]);
  });

  test('a comment that says something else is an error', () => {
    assert.throws(
      () => readSteps('a.md', '# A\n\n<!-- guide: on a sever -->\n'),
      /a\.md:3: <!-- guide: on a sever --> is not/,
    );
  });

  test('"…" stands for what differs, and alone in a line for lines', () => {
    const rows: [expected: string, printed: string, is: boolean][] = [
      ['one', 'one\n', true],
      ['one', 'one\ntwo', false],
      ['two\nthree', 'asking the network\ntwo\nthree', true],
      ['two', 'not two', false],
      ['two', 'One\ntwo', false],
      ['two', '  ✗ one\ntwo', false],
      ['…\ntwo', 'zero\none\ntwo', true],
      ['…\ntwo', 'two', true],
      ['one\n…', 'one\ntwo\nthree', true],
      ['of: core 0x…', 'of: core 0xabc', true],
      ['of: core 0x…', 'of: core 0xabc\nmore', false],
      ['free (…)', 'free (20 GiB)', true],
      ['free (…)', 'free 20 GiB', false],
    ];
    assert.deepEqual(
      rows.filter(([expected, printed, is]) => isPrinted(expected, printed) !== is),
      [],
    );
  });
});
