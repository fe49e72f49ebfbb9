import type { CoreClient } from '@skerry/client';
import type { FairSlots, Logger } from '@skerry/kit';
import type { VersionSource } from '../files/message.ts';
import type { ImageStore } from '../images/store.ts';
import type { AddressBook } from '../network/address-book.ts';
import type { NodeNetwork } from '../network/network.ts';
import type { AcceleratorChoice } from '../vm/accel.ts';
import type { GuestBounds } from '../vm/guest-bounds.ts';
import type { Status } from './record/record.ts';

/** What workers share. */
export interface InstanceDeps {
  readonly dataDir: string;
  readonly nameServers: readonly string[];
  readonly images: ImageStore;
  /** Where messages and files are read, and what is said of instances. */
  readonly core: VersionSource & Pick<CoreClient, 'getInstance'>;
  /** Throws while the core node lacks what its peers have (caught-up.ts). */
  readonly checkLag: () => Promise<void>;
  /** The largest file that is fetched. */
  readonly fileLimitBytes: number;
  readonly network: NodeNetwork;
  readonly addresses: AddressBook;
  /** The node's private IPv4 network. */
  readonly ipv4Pool: string;
  readonly accelerator: AcceleratorChoice;
  readonly bounds: GuestBounds;
  readonly starts: FairSlots;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Told of every change of a status. */
  readonly onStatus: (id: string, status: Status) => void;
}
