'use strict';
// Buttons that make a process do something, where the server was started with --allow-actions.

const at = (id) => document.getElementById(id);

// `pid`: of the process that is shown, "" where it is to be typed; `allowed`: the server says so.
function showActions(pid, allowed) {
  at('actions').hidden = !allowed;
  at('actions').dataset.pid = pid;
  at('which').hidden = Boolean(pid);
  at('attach').hidden = Boolean(pid);
  for (const id of ['labelled', 'report', 'detach']) at(id).hidden = !pid;
}

async function act(what) {
  const pid = at('actions').dataset.pid || at('pid').value.trim();
  if (!/^[0-9]+$/.test(pid)) {
    at('done').textContent = 'give the pid of a process';
    return;
  }
  const label = what === 'report' && at('label').value;
  at('done').textContent = 'asking';
  for (const button of at('actions').querySelectorAll('button')) button.disabled = true;
  const answer = await fetch(`api/processes/${pid}/${what}` +
      (label ? `?label=${encodeURIComponent(label)}` : ''), {method: 'POST'}).catch(() => null);
  const body = answer && await answer.json().catch(() => null);
  for (const button of at('actions').querySelectorAll('button')) button.disabled = false;
  at('done').textContent = body ? (body.error ?? body.output).trim() : 'the server does not answer';
}

for (const what of ['report', 'attach', 'detach']) at(what).onclick = () => act(what);
at('actions').onsubmit = (event) => {
  event.preventDefault();
  act(at('actions').dataset.pid ? 'report' : 'attach');
};
