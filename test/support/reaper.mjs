// Ends what a run of the tests has started and has not ended, when the run itself is gone: killed, or interrupted. It
// is started by the run with the other end of a pipe, which the system closes whatever befalls the run. Usage: node
// reaper.mjs NAME VALUE, the variable by which processes of the run are known, and its folder, which goes too.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';

/** Time in milliseconds for ending by itself, as a node does that is asked to. */
const GRACE_MS = 3_000;
const [, , name, value] = process.argv;

process.stdin.resume().on('close', () => {
  const found = leftOvers();
  for (const pid of found) end(pid, 'SIGTERM');
  setTimeout(
    () => {
      for (const pid of leftOvers()) end(pid, 'SIGKILL');
      rmSync(value, { recursive: true, force: true });
    },
    found.length === 0 ? 0 : GRACE_MS,
  );
});

function end(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

/** Processes that have the variable in their environment, and so come from that run. */
function leftOvers() {
  const entry = `${name}=${value}`;
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid))
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(entry);
        } catch {
          return false;
        }
      })
      .map(Number);
  }
  const lines = execFileSync('ps', ['-A', '-E', '-ww', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => line.split(' ').includes(entry)).map((line) => Number.parseInt(line, 10));
}
