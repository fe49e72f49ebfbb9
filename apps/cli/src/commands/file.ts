import type { Command } from 'commander';
import { type Bind, examples } from '../bind.ts';
import type { FileGetOptions } from '../files/get.ts';
import type { FileListOptions } from '../files/list.ts';
import type { FilePutOptions } from '../files/put.ts';
import { parseList, parsePositive } from '../options.ts';

/** Of files on a page, unless somebody says another. */
const PAGE_SIZE = 100;

export function addFileCommands(program: Command, bind: Bind): void {
  const file = program.command('file').description('files, named by the SHA-256 of their bytes or by a CID');

  file
    .command('put')
    .description('store a file; prints its hash')
    .argument('<path>', 'a file of this computer (of a directory, an archive), or - for standard input')
    .option('--tags <list>', 'labels that lists find it by, comma-separated', parseList)
    .option('--channel <name>', 'channel to publish in (default: skerry)')
    .addHelpText(
      'after',
      `${examples('skerry file put photo.jpg', 'skerry file put site.tar --tags site,v2')}

A mebibyte or more goes on where it broke off: by itself while the node answers, and where
the same command is run again within a day. A file that the node keeps for you already is not sent again; with other tags or
another channel, one more message keeps it, at the price of another file.`,
    )
    .action(
      bind<FilePutOptions>(async (context, options, [path]) =>
        (await import('../files/put.ts')).putFile(context, path!, options),
      ),
    );

  file
    .command('get')
    .description('download a file and verify its hash')
    .argument('<hash>', 'the SHA-256 or CID of the file, or the hash of the message that keeps it')
    .option('-o, --output <file>', 'output file (default: standard output)')
    .addHelpText('after', examples('skerry file get HASH -o photo.jpg', 'skerry file get HASH | tar x'))
    .action(
      bind<FileGetOptions>(async (context, options, [hash]) =>
        (await import('../files/get.ts')).getFile(context, hash!, options),
      ),
    );

  addTelling(file, bind);
}

/** What is told of files without their bytes. */
function addTelling(file: Command, bind: Bind): void {
  file
    .command('info')
    .description('show what a core node has of a file: its size, and the messages that keep it')
    .argument('<hash>', 'the SHA-256 or CID of the file, or the hash of the message that keeps it')
    .addHelpText('after', examples('skerry file info HASH', 'skerry file info HASH --json'))
    .action(
      bind(async (context, _options, [hash]) => (await import('../files/info.ts')).showFile(context, hash!)),
    );

  file
    .command('list')
    .description('list the files that you keep, newest first: size, credits per month, hash')
    .option('--address <address>', 'list those of another owner')
    .option('--page <n>', 'page number, from 1 (default: 1)', parsePositive)
    .option('--limit <n>', 'files per page', parsePositive, PAGE_SIZE)
    .addHelpText(
      'after',
      `${examples('skerry file list', 'skerry file list --page 2 --json')}

"skerry message forget MESSAGE" ends what keeps a file, and what it costs.`,
    )
    .action(
      bind<FileListOptions>(async (context, options) =>
        (await import('../files/list.ts')).listFiles(context, options),
      ),
    );
}
