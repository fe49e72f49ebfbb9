import { checkImage, foldInstance, instanceNeeds, ownerOf, parseInstanceContent } from '@skerry/protocol';
import { defineKind } from '../accepted.ts';
import { resourceEffect } from '../effects/credits.ts';
import { instanceEffect } from '../effects/instances.ts';

/** INSTANCE: a virtual machine that its owner wants running. */
export const instance = defineKind({
  read: parseInstanceContent,
  effects: [instanceEffect, resourceEffect],
  // No node starts an image that it does not know.
  checkNew: ({ image }) => checkImage(image),
  accept(message, content) {
    const owner = ownerOf(message.sender, content);
    const fold = foldInstance(message, owner, content);
    return {
      image: content.image,
      changes: [
        instanceEffect.change({ instanceId: message.itemHash, fold }),
        resourceEffect.change({ from: 'needs', needs: instanceNeeds(content) }),
      ],
    };
  },
});
