// Numbers as text, and elements.

const kUnits = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

// Made once: toLocaleString() makes one for each number.
const kGrouped = new Intl.NumberFormat('en-US');

function grouped(number) {
  return kGrouped.format(number);
}

function signed(number) {
  return (number < 0 ? '-' : '+') + grouped(Math.abs(number));
}

function sizeText(bytes) {
  let unit = 0;
  let size = Math.abs(bytes);
  for (; size >= 1024 && unit + 1 < kUnits.length; size /= 1024) ++unit;
  return `${bytes < 0 ? '-' : ''}${unit === 0 ? size : size.toFixed(1)} ${kUnits[unit]}`;
}

function countText(number, what) {
  return `${grouped(number)} ${what}${number === 1 || number === -1 ? '' : 's'}`;
}

function percentText(part, whole) {
  return `${(whole === 0 ? 0 : 100 * part / whole).toFixed(2)}%`;
}

// The reader's clock, with its zone, as "21:15:31 CET".
const kClock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short',
});
const kDay = new Intl.DateTimeFormat('sv-SE');  // "2026-11-20"

// Of milliseconds since 1970, or a time as in reports.
function clockText(time) {
  return kClock.format(new Date(time));
}

// With the day.
function timeText(time) {
  return `${kDay.format(new Date(time))} ${clockText(time)}`;
}

const at = (id) => document.getElementById(id);

// Children are elements and texts.
function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function makeSvg(name, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}
