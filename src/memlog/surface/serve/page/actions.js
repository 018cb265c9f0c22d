'use strict';
// Buttons that make a process do something, where the server was started with --allow-actions.

// `pid`: of the process that is shown, "" where it is to be typed; `allowed`: the server says so.
function showActions(pid, allowed) {
  at('actions').hidden = !allowed;
  at('actions').dataset.pid = pid;
  at('which').hidden = Boolean(pid);
  at('attach').hidden = Boolean(pid);
  for (const id of ['labelled', 'report', 'detach', 'aged', 'expire']) at(id).hidden = !pid;
}

// How long to watch, in seconds: three times as long as a block may live, as the server allows.
function watchLength(after) {
  const [, number, unit] = /^([0-9.]+)(ms|s|)$/.exec(after) ?? [];
  return Math.min(60, Math.max(3, Math.ceil(3 * number * (unit === 'ms' ? 0.001 : 1)) || 60));
}

function queryOf(what) {
  const query = new URLSearchParams();
  if (what === 'report' && at('label').value) query.set('label', at('label').value);
  if (what === 'expire') {
    query.set('after', at('after').value.trim());
    query.set('seconds', watchLength(query.get('after')));
  }
  return query;
}

function expiredText({functions, watched_ms}) {
  const over = `${countText(Math.round(watched_ms / 1000), 'second')} watched: `;
  if (!functions.length) return over + 'no new block expired';
  return over + 'new blocks that expired and are not freed\n' + functions.slice(0, 20).map((one) =>
      `${sizeText(one.may_leak_bytes)} in ${countText(one.may_leak_blocks, 'block')}  ` +
      `${one.function}  ${one.source ?? ''}`).join('\n');
}

async function act(what) {
  const pid = at('actions').dataset.pid || at('pid').value.trim();
  if (!/^[0-9]+$/.test(pid)) {
    at('done').textContent = 'give the pid of a process';
    return;
  }
  const query = queryOf(what);
  at('done').textContent = what === 'expire' ? `watching for ${query.get('seconds')} s` : 'asking';
  const shown = location.hash;
  at(what).disabled = true;
  const answer = await fetch(`api/processes/${pid}/${what}?${query}`, {method: 'POST'})
      .catch(() => null);
  const body = answer && await answer.json().catch(() => null);
  at(what).disabled = false;
  if (location.hash !== shown) return;
  at('done').textContent = !body ? 'the server does not answer'
      : body.error ?? (what === 'expire' ? expiredText(body) : body.output.trim());
}

for (const what of ['report', 'attach', 'detach', 'expire']) at(what).onclick = () => act(what);
at('actions').onsubmit = (event) => {
  event.preventDefault();
  act(at('actions').dataset.pid ? 'report' : 'attach');
};
