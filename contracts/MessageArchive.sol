// SPDX-License-Identifier: UNLICENSED
pragma solidity 0.8.37;

/// Puts archives of messages on a chain. Anybody may emit; each core node decides whose archives it reads.
/// Events and functions are those of deployed networks, so that their tools read them as well.
contract MessageArchive {
    /// `message` is JSON: {protocol, version, content}, where content is the CID of an archive, or an archive.
    event SyncEvent(uint256 timestamp, address addr, string message);
    /// One message by the sender of the transaction itself, without another signature.
    event MessageEvent(uint256 timestamp, address addr, string msgtype, string msgcontent);

    function doEmit(string calldata content) external {
        emit SyncEvent(block.timestamp, msg.sender, content);
    }

    function doMessage(string calldata msgType, string calldata msgContent) external {
        emit MessageEvent(block.timestamp, msg.sender, msgType, msgContent);
    }
}
