class Job < ApplicationRecord
  SEARCHED = %i[title company location].freeze

  belongs_to :user
  has_many :job_applications

  validates :title, :company, :location, :description, presence: true
  validates :salary, numericality: { only_integer: true, greater_than: 0 }, allow_nil: true

  # Jobs whose fields contain what is asked for; blank questions are left out.
  def self.search(query)
    SEARCHED.reduce(all) do |jobs, field|
      next jobs if query[field].blank?

      jobs.where(arel_table[field].matches("%#{sanitize_sql_like(query[field])}%", "\\"))
    end
  end

  def as_answer
    slice(:id, :title, :company, :location, :description, :salary)
      .merge(employer: user.slice(:id, :name))
  end
end
