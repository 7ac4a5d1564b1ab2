(function () {
  'use strict';

  angular.module('notesApp').filter('search', search);

  function search() {
    return find;
  }

  /** The notes that a query finds, in the order in which they are given. */
  function find(notes, query) {
    var terms = parse(query);
    return notes.filter(function (note) {
      return terms.every(function (term) {
        return meets(note, term) !== term.excluded;
      });
    });
  }

  function parse(query) {
    return query.split(/\s+/).map(toTerm).filter(function (term) {
      return term.value !== '';
    });
  }

  function toTerm(written) {
    var excluded = written[0] === '-';
    var rest = excluded ? written.slice(1) : written;
    return { excluded: excluded, value: lower(rest) };
  }

  function meets(note, term) {
    var tags = note.tags.map(lower);
    return [lower(note.title), lower(note.text)].concat(tags).some(function (text) {
      return text.indexOf(term.value) >= 0;
    });
  }

  function lower(text) {
    return text.toLowerCase();
  }
})();
